"""What Postgres will never take, told from a Postgres that only cannot take it now."""

from sqlalchemy.exc import StatementError

# Classes of SQLSTATE that pass by themselves: connection, transaction, resources, locks, operator, system.
PASSING = frozenset({"08", "25", "40", "53", "55", "57", "58", "XX"})


def is_refusal(error: Exception) -> bool:
    """Tell news that Postgres will never take from a Postgres that is away, starting up, dead-locked or slow."""
    if isinstance(error, StatementError) and error.orig is not None:
        state = getattr(error.orig, "sqlstate", None)
        return isinstance(state, str) and state[:2] not in PASSING
    # The statement could not even be made.
    return isinstance(error, StatementError | TypeError | ValueError | KeyError | AttributeError)
