"""One Postgres per test process; each test gets its own database, cloned from a migrated template."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator

import pytest

from mirror.migrate import migrate
from mirror.sessions import Database
from tests.support.postgres import PostgresServer, execute
from tests.support.s3 import S3Server
from tests.support.shared_temporal import stop_shared_temporal

TEMPLATE = "vlog_template"
_numbers = itertools.count(1)


async def _prepare(server: PostgresServer) -> None:
    await execute(server, f"CREATE DATABASE {TEMPLATE}")
    await migrate(server.url(TEMPLATE))


@pytest.fixture(scope="session", autouse=True)
def _shared_temporal() -> Iterator[None]:
    """Stop it when all is over, if anybody has started it."""
    yield
    stop_shared_temporal()


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """Start the server that all tests of this process share."""
    server = PostgresServer(tmp_path_factory.mktemp("postgres"))
    server.create()
    server.start()
    try:
        asyncio.run(_prepare(server))
        yield server
    finally:
        server.stop()


@pytest.fixture
async def database_url(postgres: PostgresServer) -> AsyncIterator[str]:
    """Clone a fresh, migrated database; committed rows of other tests are not in it."""
    name = f"vlog_{next(_numbers)}"
    await execute(postgres, f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
    yield postgres.url(name)
    await execute(postgres, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    made = Database(database_url, pool_size=5)
    yield made
    await made.close()


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """Start the S3 server that all tests of this process share; each has a prefix of its own."""
    server = S3Server(tmp_path_factory.mktemp("s3"))
    server.start()
    try:
        yield server
    finally:
        server.close()
