"""One claimed step on a remote worker: the same activity code, in a context whose beats go over HTTP."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from pydantic import ValidationError
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from activities.failures import translate
from activities.recording import failure_of
from contracts.errors import FailureKind, InternalTransient, VlogError, WorkerFull
from contracts.gateway import REMOTE_STEPS
from contracts.steps import StepFailure, StepProgress
from storage.http_calls import Away, ClaimGone, NotOurs, Refused, Waits
from workers.remote_api import PROGRESS_S, ClaimedStep, RemoteApi

log = logging.getLogger(__name__)

NOT_YOURS = "CLAIM_NOT_YOURS"  # of an API that was started with another sealing key; others may still open the claim

AGAIN_S = 0.5
SLOW_S = 15.0  # longer than the API itself waits for Temporal; a line that is dead must not hide a cancel for long
GRACE_S = 5.0  # Temporal's clocks are not read to the second
# As the API says it of its own code: nothing failed, and who took it would take it again at once.
NOT_UNDERSTOOD = "The step is of another version than this worker: another worker takes it."
NOT_UNDERSTOOD_S = 15.0


class RemoteStepRun:
    """Runs one step to its end, and says how it ended for as long as the claim may still be alive."""

    def __init__(
        self,
        api: RemoteApi,
        claimed: ClaimedStep,
        step: Callable[[Any], Awaitable[Any]] | None,  # none: this worker has no such step
        interceptors: list[Interceptor],  # the outermost first
        refused: Callable[[Refused], None],
    ) -> None:
        self._api, self._claimed, self._step, self._refused = api, claimed, step, refused
        self._interceptors = interceptors
        self._progress: StepProgress | None = None
        self._heard_at = time.monotonic()
        self._gone = False
        # Temporal's own way to run an activity without its worker. What it was made for is tests; what it does is
        # give `activity.info`, heartbeats and cancellation to code that asks for them.
        self._context = ActivityEnvironment()
        self._context.on_heartbeat = self._take_beat
        self._context.info = replace(
            self._context.info,
            activity_id=claimed.step_key,
            activity_type=claimed.activity,
            attempt=claimed.attempt,
            heartbeat_timeout=timedelta(seconds=claimed.heartbeat_timeout_s),
            started_time=claimed.started_at,
            task_queue=claimed.queue,
            task_token=claimed.claim.encode(),
            workflow_id=claimed.workflow_id,
        )

    def drain(self) -> None:
        """Tell the step that its worker is being stopped; it may go on for as long as that lets it."""
        self._context.worker_shutdown()

    async def run(self) -> None:
        beating = asyncio.create_task(self._beat())
        try:
            await self._end(await self._run())
        finally:
            beating.cancel()
            self._api.calls.heard_at.pop(self._claimed.claim, None)

    async def _run(self) -> Any:
        """Give the step's result, or the error that it ended with; None when it was cancelled."""
        known = REMOTE_STEPS.get(self._claimed.activity)
        try:
            if known is None or self._step is None:
                return self._not_understood(f"it has no step {self._claimed.activity}")
            request = known.request.model_validate(self._claimed.request)
        except ValidationError as error:
            return self._not_understood(", ".join(".".join(map(str, each["loc"])) for each in error.errors()))
        inbound: ActivityInboundInterceptor = _Call(None)  # type: ignore[arg-type]  # there is nothing further in
        for interceptor in reversed(self._interceptors):
            inbound = interceptor.intercept_activity(inbound)
        called = ExecuteActivityInput(fn=self._step, args=[request], executor=None, headers={})
        running = asyncio.ensure_future(self._context.run(inbound.execute_activity, called))
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError:
            self._context.cancel()
            await asyncio.wait([running])
            raise
        if running.cancelled():
            return None
        return running.exception() or running.result()

    def _not_understood(self, why: str) -> ApplicationError:
        """Give back what only newer code can do: machines far away lag behind, and no video fails for that."""
        log.error("%s is of another version than this worker, which wants an upgrade: %s", self._claimed.step_key, why)
        later = WorkerFull(NOT_UNDERSTOOD)
        later.retry_after_s = NOT_UNDERSTOOD_S
        return translate(later, self._claimed.attempt)

    # --- meanwhile ----------------------------------------------------------------------------------------------

    def _take_beat(self, *details: Any) -> None:
        if details and isinstance(details[0], StepProgress):
            self._progress = details[0]

    async def _beat(self) -> None:
        """Hold the claim and hear of a cancel; a claim that is gone stops the step."""
        wait_s = 0.0  # the first one says that the claim has arrived
        # An API that is slow is there: what it answers late holds the claim all the same.
        within_s = max(PROGRESS_S, min(SLOW_S, self._claimed.heartbeat_timeout_s / 3))
        while True:
            await asyncio.sleep(wait_s)
            wait_s = self._claimed.progress_every_s
            try:
                stop = await self._api.progress(self._claimed.claim, self._progress, within_s)
            except ClaimGone:
                log.warning("%s is somebody else's by now", self._claimed.step_key)
                break
            except Refused as error:
                self._refused(error)
                if self._is_over():
                    break
                continue
            except VlogError as error:  # whatever it is, the next one may be heard
                if self._is_over():
                    log.warning("%s is lost: %s", self._claimed.step_key, error.sentence)
                    break
                wait_s = min(AGAIN_S, wait_s)
                continue
            self._heard_at = time.monotonic()
            if stop:
                self._context.cancel()
        self._gone = True
        self._context.cancel()

    def _is_over(self) -> bool:
        """Tell whether the claim has run out; who reads and writes holds it, too."""
        heard_at = max(self._heard_at, self._api.calls.heard_at.get(self._claimed.claim, 0.0))
        return time.monotonic() - heard_at > self._claimed.heartbeat_timeout_s + GRACE_S

    # --- the end ------------------------------------------------------------------------------------------------

    async def _end(self, result: Any) -> None:
        waits, began = Waits(), time.monotonic()
        while not self._gone and not self._is_over():
            why: Away | None = None
            try:
                await self._tell(result)
                return
            except ClaimGone:
                # Most often the answer to an earlier call was lost on its way: there is nothing more to do.
                log.info("%s had ended already", self._claimed.step_key)
                return
            except Refused as error:
                log.error("the end of %s was refused: %s", self._claimed.step_key, error.sentence)
                self._refused(error)
                # While keys are changed one API may open a claim that another cannot: for a while it is asked on.
                if error.answer != NOT_YOURS or time.monotonic() - began > self._claimed.heartbeat_timeout_s:
                    if isinstance(result, BaseException):  # there is nothing else to say
                        return
                    result = InternalTransient(f"The result was refused: {error.sentence}")
            except Away as error:
                why = error
            except VlogError as error:
                log.warning("the end of %s was not heard: %s", self._claimed.step_key, error.sentence)
            try:
                await waits.once(why)
            except NotOurs as error:  # for long something on the way has kept it from the API
                if isinstance(result, BaseException):
                    return
                result, waits = InternalTransient(f"The result did not reach the API: {error.sentence}"), Waits()

    async def _tell(self, result: Any) -> None:
        claim = self._claimed.claim
        match result:
            case None:
                await self._api.cancelled(claim)
            case ApplicationError():
                delay = result.next_retry_delay
                await self._api.fail(claim, _failure(result), delay.total_seconds() if delay else None)
            case BaseException():
                await self._api.fail(claim, _failure(result))
            case _:
                await self._api.complete(claim, result)


class _Call(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        return await input.fn(*input.args)


def _failure(error: BaseException) -> StepFailure:
    known = failure_of(error) if isinstance(error, ApplicationError) else None
    if known is not None:
        return known
    sentence = error.sentence if isinstance(error, VlogError) else f"Unexpected {type(error).__name__}."
    return StepFailure(code=InternalTransient.code, kind=FailureKind.RETRYABLE, sentence=sentence)
