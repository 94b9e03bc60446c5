"""Why a step failed for good, read out of Temporal's errors. Codes and kinds decide; texts are for people."""

from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    ChildWorkflowError,
    RetryState,
    TimeoutError,
    TimeoutType,
)

from contracts.errors import (
    GPU_NOT_TAKEN,
    RETRIES_EXHAUSTED,
    SENTENCE_LIMIT,
    EncoderCrashed,
    EncoderOutOfMemory,
    EncoderRejected,
    EncoderStalled,
    FailureKind,
    OutputIncomplete,
)
from contracts.steps import StepFailure

# An encoder that breaks on a list may break on one quality of it only: the list is split, not repeated.
ENCODER_FAULTS = tuple(
    fault.code for fault in (EncoderCrashed, EncoderStalled, EncoderRejected, EncoderOutOfMemory, OutputIncomplete)
)


def reason(error: ActivityError | ChildWorkflowError) -> StepFailure:
    """Read out of Temporal's error why the step failed for good."""
    error = _innermost(error)
    cause = error.cause
    if isinstance(cause, ApplicationError):
        failure = _failure_in(cause)
        # Of a step that a pause took back whoever counts its tries raises this only when none is left.
        taken_back = error.retry_state is RetryState.CANCEL_REQUESTED and failure.kind is FailureKind.RETRYABLE
        if taken_back or error.retry_state is RetryState.MAXIMUM_ATTEMPTS_REACHED:
            return failure.model_copy(
                update={
                    "code": RETRIES_EXHAUSTED,
                    "kind": FailureKind.FATAL,
                    "sentence": f"Every attempt failed; the last one said: {failure.sentence}"[:SENTENCE_LIMIT],
                }
            )
        return failure
    sentence = "The step failed."
    if isinstance(cause, TimeoutError):
        if cause.type is TimeoutType.SCHEDULE_TO_START:  # only a GPU's steps have such a limit
            return StepFailure(
                code=GPU_NOT_TAKEN, kind=FailureKind.DESCEND, sentence="No GPU worker began it in time.", attempt=0
            )
        silent = cause.type is TimeoutType.HEARTBEAT
        sentence = "Every worker that tried went silent." if silent else "The step took longer than its time limit."
    return StepFailure(code=RETRIES_EXHAUSTED, kind=FailureKind.FATAL, sentence=sentence)


def failed_step(error: ActivityError | ChildWorkflowError) -> str:
    """Name the step that failed, as the UI does."""
    error = _innermost(error)
    return error.activity_id if isinstance(error, ActivityError) else ""


def tries_in(error: ActivityError, failed_before: int) -> int | None:
    """Count the real tries of a step that was taken back; None when its failure stands all the same.

    Temporal says "cancel requested" of all of these and repeats none, whatever the cause. `failed_before` is what was
    known of it when it was taken back, for those that do not say.
    """
    cause = error.cause
    if isinstance(cause, ApplicationError):
        failure = _failure_in(cause)
        if failure.kind is FailureKind.FATAL or failure.kind is FailureKind.DESCEND:
            return None
        return failure.attempt - (failure.kind is FailureKind.LATER)
    # Silence is a try. A step that heard it, or waited for a worker, has handed back what it had.
    silent = isinstance(cause, TimeoutError) and cause.type is not TimeoutType.SCHEDULE_TO_START
    return failed_before + silent


def _innermost(error: ActivityError | ChildWorkflowError) -> ActivityError | ChildWorkflowError:
    while isinstance(error, ChildWorkflowError) and isinstance(error.cause, ActivityError | ChildWorkflowError):
        error = error.cause
    return error


def _failure_in(cause: ApplicationError) -> StepFailure:
    first = cause.details[0] if cause.details else None
    # Details arrive as plain dictionaries: only the sender knew their type. Anything else is not ours.
    if isinstance(first, dict) and first.keys() >= {"code", "kind", "sentence"}:
        return StepFailure.model_validate(first)
    return StepFailure(
        code=cause.type or "INTERNAL_TRANSIENT", kind=FailureKind.FATAL, sentence=(cause.message or "")[:SENTENCE_LIMIT]
    )
