"""What a remote worker's failure means: read from its code, in the one tree of errors. Its own opinion does not count.

A local worker's failures are put into Temporal's words by activities/failures.py; these come from there, over HTTP.
"""

from datetime import timedelta

from temporalio.exceptions import ApplicationError

from contracts import errors
from contracts.errors import SENTENCE_LIMIT, Drained, FailureKind, InternalTransient, VlogError
from contracts.steps import StepFailure

DETAIL_LIMIT = 4000
LONGEST_DELAY_S = 66.0  # a minute, give or take a tenth
LONGEST_LATER_S = 900.0

_TREE: dict[str, type[VlogError]] = {
    kind.code: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, VlogError) and "code" in vars(kind)
}


def as_failure(code: str, sentence: str, *, detail: str = "", retry_after_s: float | None = None) -> StepFailure:
    """Say what failed; a code that nobody knows may pass by itself, like any unknown error (decision 0001)."""
    known = _TREE.get(code, InternalTransient)
    wait_s = known.retry_after_s if retry_after_s is None else min(max(retry_after_s, 0.0), LONGEST_LATER_S)
    return StepFailure(
        code=known.code,
        kind=known.kind,
        sentence=sentence[:SENTENCE_LIMIT],
        detail=detail[-DETAIL_LIMIT:],
        retry_after_s=wait_s if known.kind is FailureKind.LATER else 0.0,
    )


def drained(attempt: int) -> StepFailure:
    """Hand a step back that reached nobody: it is scheduled anew, and no attempt is counted."""
    return as_failure(Drained.code, "The worker hung up.").model_copy(update={"attempt": attempt})


def as_error(failure: StepFailure, retry_delay_s: float | None = None) -> ApplicationError:
    """Say it in Temporal's words."""
    retryable = failure.kind is FailureKind.RETRYABLE
    delay = None if retry_delay_s is None else timedelta(seconds=min(max(retry_delay_s, 0.0), LONGEST_DELAY_S))
    return ApplicationError(
        failure.sentence,
        failure,
        type=failure.code,
        non_retryable=not retryable,
        next_retry_delay=delay if retryable else None,
    )
