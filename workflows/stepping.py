"""Running one step: its promise, its name in the UI, waiting without cost, and what its failure means."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    ChildWorkflowError,
    RetryState,
    TimeoutError,
    TimeoutType,
)

from contracts.errors import (
    RETRIES_EXHAUSTED,
    SENTENCE_LIMIT,
    EncoderCrashed,
    EncoderRejected,
    EncoderStalled,
    FailureKind,
    OutputIncomplete,
)
from contracts.states import Tier
from contracts.steps import StepFailure, StepRequest, TranscodeRequest
from workflows import options

Request = TypeVar("Request", bound=StepRequest)
Result = TypeVar("Result")

WAITS_LIMIT = 500  # a resource that stays busy this many times is not busy but broken


# An encoder that breaks on a list may break on one quality of it only: the list is split, not repeated.
ENCODER_FAULTS = (EncoderCrashed.code, EncoderStalled.code, EncoderRejected.code, OutputIncomplete.code)


class Tries:
    """Real tries of one piece of work, over generations and over the split of a list."""

    def __init__(self, used: int = 0) -> None:
        self.used = used


class Steps:
    """Runs the steps of one job."""

    def __init__(self, job: TranscodeRequest) -> None:
        self._job = job
        self._stopping = False  # one of several pieces has failed: the others begin nothing new
        self.paused = False
        self.tier = job.tier

    async def run(
        self,
        step: Callable[[Any, Request], Awaitable[Result]],
        request: Request,
        promise: options.Promise,
        summary: str,
        *,
        tries: Tries | None = None,
        give_up_on: Sequence[str] = (),
    ) -> Result:
        """Run a step to its end.

        A step that is told "later", or whose worker is drained, is scheduled anew under the next generation
        and has not used an attempt; tries count over all generations. Codes in `give_up_on` are not repeated.
        """
        tries, waits = tries or Tries(), 0
        while True:
            self._go_on(promise)
            request = request.model_copy(update={"generation": waits, "tries_before": tries.used})
            try:
                result = await workflow.execute_activity_method(
                    step,
                    request,
                    activity_id=_activity_id(request),
                    task_queue=promise.queue,
                    start_to_close_timeout=promise.limit,
                    heartbeat_timeout=timedelta(seconds=self._job.heartbeat_timeout_s) if promise.heartbeats else None,
                    retry_policy=options.retries(promise, self._job.max_attempts - tries.used, give_up_on),
                    cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
                    priority=options.turn(promise, self._job.owner),
                    summary=summary,
                )
            except ActivityError as error:
                failure = reason(error)
                if failure.kind is not FailureKind.LATER or waits >= WAITS_LIMIT:
                    tries.used += failure.attempt
                    raise
                tries.used += failure.attempt - 1
            else:
                self._go_on(promise)
                return result
            if failure.retry_after_s:
                self._go_on(promise)
                await workflow.sleep(failure.retry_after_s, summary=f"waiting: {failure.sentence}")
            waits += 1

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False

    def set_tier(self, tier: Tier) -> None:
        self.tier = tier

    def has_tries_left(self, tries: Tries) -> bool:
        return tries.used < self._job.max_attempts

    async def together(self, *work: Coroutine[Any, Any, Any]) -> list[Any]:
        """Run side by side; when one fails, stop the others, wait until they have stopped, and raise its own error."""
        tasks = [asyncio.create_task(each) for each in work]
        try:
            return await asyncio.gather(*tasks)
        except BaseException:
            self._stopping = True
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise

    def _go_on(self, promise: options.Promise) -> None:
        """Raise a cancellation that a step has swallowed by ending on its own; an end is written all the same."""
        if not promise.until_done and (self._stopping or workflow.cancellation_reason() is not None):
            raise asyncio.CancelledError


def _activity_id(request: StepRequest) -> str:
    """Name the step readably in Temporal's UI; a new generation is a new activity."""
    return request.step_key + (f"~{request.generation}" if request.generation else "")


def reason(error: ActivityError | ChildWorkflowError) -> StepFailure:
    """Read out of Temporal's error why the step failed for good."""
    while isinstance(error, ChildWorkflowError) and isinstance(error.cause, ActivityError | ChildWorkflowError):
        error = error.cause
    cause = error.cause
    if isinstance(cause, ApplicationError):
        failure = _failure_in(cause)
        if error.retry_state is RetryState.MAXIMUM_ATTEMPTS_REACHED:
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
        silent = cause.type is TimeoutType.HEARTBEAT
        sentence = "Every worker that tried went silent." if silent else "The step took longer than its time limit."
    return StepFailure(code=RETRIES_EXHAUSTED, kind=FailureKind.FATAL, sentence=sentence)


def failed_step(error: ActivityError | ChildWorkflowError) -> str:
    """Name the step that failed, as the UI does."""
    while isinstance(error, ChildWorkflowError) and isinstance(error.cause, ActivityError | ChildWorkflowError):
        error = error.cause
    return error.activity_id if isinstance(error, ActivityError) else ""


def _failure_in(cause: ApplicationError) -> StepFailure:
    first = cause.details[0] if cause.details else None
    # Details arrive as plain dictionaries: only the sender knew their type. Anything else is not ours.
    if isinstance(first, dict) and first.keys() >= {"code", "kind", "sentence"}:
        return StepFailure.model_validate(first)
    return StepFailure(
        code=cause.type or "INTERNAL_TRANSIENT", kind=FailureKind.FATAL, sentence=(cause.message or "")[:SENTENCE_LIMIT]
    )
