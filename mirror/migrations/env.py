"""Where Alembic starts. It is handed a connection, or a URL by `alembic -x url=…`; it reads no environment."""

import asyncio

from alembic import context
from alembic.util.exc import CommandError
from sqlalchemy import Connection, pool
from sqlalchemy.ext.asyncio import create_async_engine

from mirror.tables import Base


def _run(connection: Connection) -> None:
    context.configure(connection=connection, target_metadata=Base.metadata, compare_type=True)
    with context.begin_transaction():
        context.run_migrations()


async def _connect_and_run(url: str) -> None:
    engine = create_async_engine(url, poolclass=pool.NullPool, connect_args={"timeout": 10})
    try:
        async with engine.begin() as connection:
            await connection.run_sync(_run)
    finally:
        await engine.dispose()


connection = context.config.attributes.get("connection")
if connection is not None:
    _run(connection)
else:
    url = context.get_x_argument(as_dictionary=True).get("url")
    if not url:
        raise CommandError("Say which database: alembic -x url=postgresql+asyncpg://… <command>")
    asyncio.run(_connect_and_run(url))
