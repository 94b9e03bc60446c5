"""Connections to the mirror. Reading and writing are distinct types, so that a route cannot write by accident."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, Select, text
from sqlalchemy.exc import ProgrammingError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_sessionmaker, create_async_engine

CONNECT_TIMEOUT_S = 5.0
FROZEN_MS = 60_000  # writes are short: a transaction in which nobody speaks for so long has lost its speaker
COMMAND_TIMEOUT_S = 30.0  # a server that vanished without a word must not hold a caller for ever


class ReadSession(AsyncSession):
    """Read only, and Postgres itself refuses a write through it."""


class WriteSession(AsyncSession):
    """One transaction, committed where it was opened; helpers never commit."""


@dataclass(frozen=True)
class Glance:
    """One question outside of any transaction."""

    _connection: AsyncConnection

    async def rows(self, query: Select[*tuple[Any, ...]], **values: Any) -> Sequence[Row[*tuple[Any, ...]]]:
        """Ask; a query that is made once and asked with other values need not be understood anew each time."""
        return (await self._connection.execute(query, values)).all()


AnySession = ReadSession | WriteSession


class SchemaNotReady(Exception):
    """Nobody has migrated this database to what this code needs."""


class Database:
    """The mirror's pool; nothing connects before the first session is used."""

    def __init__(self, url: str, *, pool_size: int = 2) -> None:
        self.url = url
        self._engine = create_async_engine(
            url,
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=CONNECT_TIMEOUT_S * 2,
            pool_pre_ping=True,  # after a restart of Postgres the pool holds dead connections
            # For the ping, which otherwise opens a transaction of its own: three round trips before each session. Only
            # a PgBouncer in transaction mode wants that, and there we could not listen either.
            isolation_level="AUTOCOMMIT",
            connect_args={
                "timeout": CONNECT_TIMEOUT_S,
                "command_timeout": COMMAND_TIMEOUT_S,
                "server_settings": {
                    "application_name": "vlog",
                    "timezone": "UTC",
                    "jit": "off",
                    # A process frozen in the middle of a write would keep its job's row from everybody else.
                    "idle_in_transaction_session_timeout": str(FROZEN_MS),
                },
            },
        )
        whole = self._engine.execution_options(isolation_level="READ COMMITTED")
        readonly = whole.execution_options(postgresql_readonly=True)
        self._readers = async_sessionmaker(readonly, class_=ReadSession, expire_on_commit=False)
        self._writers = async_sessionmaker(whole, class_=WriteSession, expire_on_commit=False)

    @asynccontextmanager
    async def read(self) -> AsyncIterator[ReadSession]:
        async with self._readers() as session:
            yield session

    @asynccontextmanager
    async def glance(self) -> AsyncIterator[Glance]:
        """Open a connection for one question that is asked all the time: a third of what a session costs us both."""
        async with self._engine.connect() as connection:
            yield Glance(connection)

    @asynccontextmanager
    async def write(self) -> AsyncIterator[WriteSession]:
        """Open a transaction; commit it when the block ends well, roll it back otherwise."""
        async with self._writers.begin() as session:
            yield session

    async def close(self) -> None:
        await self._engine.dispose()

    async def wait_for_schema(self, timeout_s: float = 60.0) -> None:
        """Wait until somebody has migrated; never migrate, since two versions of the code may run at once."""
        from mirror.migrate import is_current  # Alembic is slow to import, and only entry points need it

        problem = "it has no schema yet"
        deadline = asyncio.get_running_loop().time() + timeout_s
        while True:
            try:
                async with self.read() as session:
                    revision = (await session.execute(text("SELECT version_num FROM alembic_version"))).scalar()
                if is_current(revision):
                    return
                problem = f"its schema is at {revision or 'nothing'}, older than this code"
            except ProgrammingError:
                problem = "it has no schema yet"
            except (SQLAlchemyError, OSError, TimeoutError) as error:
                problem = f"it does not answer ({type(error).__name__})"
            if asyncio.get_running_loop().time() >= deadline:
                raise SchemaNotReady(f"The database is not ready: {problem}. Run `vlog migrate`.")
            await asyncio.sleep(0.25)
