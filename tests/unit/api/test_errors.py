"""What counts as a database that is away, and what as a bug."""

import asyncpg
import pytest
from sqlalchemy.exc import DBAPIError, OperationalError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from api.errors import is_database_away


@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError(),
        TimeoutError(),
        PoolTimeout(),
        asyncpg.CannotConnectNowError(),
        asyncpg.TooManyConnectionsError(),
        asyncpg.InterfaceError("connection is closed"),
        DBAPIError("SELECT 1", None, asyncpg.AdminShutdownError()),
        OperationalError("SELECT 1", None, Exception(), connection_invalidated=True),
    ],
)
def test_a_lost_connection_is_worth_trying_again(error: BaseException) -> None:
    assert is_database_away(error)


@pytest.mark.parametrize(
    "error",
    [
        ValueError(),
        ProgrammingError("SELECT 1", None, asyncpg.UndefinedTableError()),
        DBAPIError("SELECT 1", None, asyncpg.UniqueViolationError()),
        asyncpg.DataError(),
    ],
)
def test_a_bad_statement_is_not(error: BaseException) -> None:
    assert not is_database_away(error)
