"""`python -m workers.migrate`: bring the mirror's schema up to date, under a lock.

`--check` asks another question, for developers: do tables and migrations agree? On an empty Postgres of its own.
"""

import argparse
import asyncio
import tempfile
from pathlib import Path

import asyncpg
from sqlalchemy.exc import InterfaceError, OperationalError

from mirror.migrate import check, migrate
from runtime.embedded import embedded_postgres
from runtime.joining import NotRunning, resolve
from runtime.logs import configure_logs
from runtime.names import SettingsError
from runtime.settings import load_settings

# What a connection that does not come about raises, by way of SQLAlchemy or past it.
NO_CONNECTION = (OSError, InterfaceError, OperationalError, asyncpg.PostgresConnectionError, asyncpg.InterfaceError)
REFUSED = (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidCatalogNameError)


async def check_on_an_empty_database() -> None:
    with tempfile.TemporaryDirectory(prefix="vlog-migrate-") as folder:
        async with embedded_postgres(Path(folder), durable=False) as postgres:
            await migrate(postgres.url)
            await check(postgres.url)


def main() -> None:
    parser = argparse.ArgumentParser(prog="vlog migrate")
    parser.add_argument("--check", action="store_true", help="check that tables and migrations agree")
    if parser.parse_args().check:
        asyncio.run(check_on_an_empty_database())
        print("Tables and migrations agree.")
        return
    try:
        settings = load_settings()
        configure_logs(settings, "migrate")
        asyncio.run(migrate(resolve(settings).database_url))
    except (NotRunning, SettingsError) as error:
        raise SystemExit(str(error)) from None
    except (*NO_CONNECTION, *REFUSED) as error:
        why = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise SystemExit(f"The database does not let us in: {why}") from None


if __name__ == "__main__":
    main()
