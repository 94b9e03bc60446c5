"""In HTTP's words what Temporal says, or does not say, when it is asked about a claim."""

from collections.abc import Iterator
from contextlib import contextmanager

from temporalio.service import RPCError, RPCStatusCode

from api.errors import ApiError, temporal_away


@contextmanager
def connecting() -> Iterator[None]:
    """Tell a Temporal that was never reached from a fault of ours: the SDK says it with a plain RuntimeError."""
    try:
        yield
    except RuntimeError as error:
        if isinstance(error, RPCError) or "connect" not in str(error):
            raise
        raise temporal_away() from error


@contextmanager
def claim_errors() -> Iterator[None]:
    """Say in HTTP's words what Temporal says of a claim."""
    try:
        with connecting():
            yield
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            sentence = "The claim is gone: it ended, ran out, or its job did. Whoever has the step now goes on with it."
            raise ApiError(409, "CLAIM_EXPIRED", sentence) from error
        if error.status is RPCStatusCode.INVALID_ARGUMENT:
            raise ApiError(400, "CLAIM_REFUSED", "Temporal does not take this of this step.") from error
        raise  # it is away: api/errors.py
