"""Shows every step to the mirror: start, heartbeats, end. Activities themselves never think of it.

The recorder only remembers; it writes when Postgres lets it. No step waits for the mirror or fails with it.
"""

import asyncio
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.worker import (
    ActivityInboundInterceptor,
    ActivityOutboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
)

from contracts.media import SourceFacts
from contracts.plan import TranscodePlan
from contracts.queues import TaskQueue
from contracts.states import StepOutcome
from contracts.steps import RemuxedSource, StepFailure, StepProgress, StepRequest
from media.weights import need_of
from mirror.recorder import StepClaim, StepRecorder


class RecordingInterceptor(Interceptor):
    def __init__(self, recorder: StepRecorder) -> None:
        self._recorder = recorder

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Recorded(next, self._recorder)


class _Recorded(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, recorder: StepRecorder) -> None:
        super().__init__(next)
        self._recorder = recorder

    def init(self, outbound: ActivityOutboundInterceptor) -> None:
        super().init(_Beats(outbound, self._recorder))

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        request = input.args[0] if input.args else None
        if not isinstance(request, StepRequest):
            return await self.next.execute_activity(input)
        claim = claim_of(request)
        _claims[activity.info().task_token] = claim
        self._recorder.started(claim)
        try:
            result = await self.next.execute_activity(input)
        except asyncio.CancelledError:
            # A pause or a cancel: what is stored is handed back. Which of the two only the job's end can tell.
            self._recorder.ended(claim, StepOutcome.PARTIAL)
            raise
        except ApplicationError as error:
            failure = failure_of(error)
            self._recorder.ended(
                claim,
                StepOutcome.FAILED,
                code=failure.code if failure else error.type,
                sentence=failure.sentence if failure else error.message,
                detail=failure.detail if failure else None,
                # Whatever a GPU cannot do is done all the same.
                will_retry=claim.queue == TaskQueue.GPU
                or (not error.non_retryable and not claim.is_last and not _is_given_up(error)),
            )
            raise
        finally:
            _claims.pop(activity.info().task_token, None)
        if isinstance(result, RemuxedSource):
            self._recorder.learned(claim, result.facts)
        elif isinstance(result, SourceFacts | TranscodePlan):
            self._recorder.learned(claim, result)
        self._recorder.ended(claim, StepOutcome.COMPLETED)
        return result


class _Beats(ActivityOutboundInterceptor):
    def __init__(self, next: ActivityOutboundInterceptor, recorder: StepRecorder) -> None:
        super().__init__(next)
        self._recorder = recorder

    def heartbeat(self, *details: Any) -> None:
        super().heartbeat(*details)
        claim = _claims.get(activity.info().task_token)
        if claim is not None:
            progress = details[0] if details and isinstance(details[0], StepProgress) else None
            self._recorder.beat(claim, progress)


# Claims of the steps this process is running, by task token: the outbound side has no request to read.
_claims: dict[bytes, StepClaim] = {}


def claim_of(request: StepRequest) -> StepClaim:
    """Describe the attempt that is running now."""
    info = activity.info()
    policy = info.retry_policy
    return StepClaim(
        job_id=request.job_id,
        video_id=request.video_id,
        step=request.step,
        step_key=request.step_key,
        qualities=request.step_qualities,
        span=request.step_span,
        generation=request.generation,
        tries_before=request.tries_before,
        attempt=info.attempt,
        max_attempts=policy.maximum_attempts if policy else 0,
        queue=info.task_queue,
        slots=need_of(request).slots,
        scheduled_at=info.current_attempt_scheduled_time,
        started_at=info.started_time,
        heartbeat_timeout_s=info.heartbeat_timeout.total_seconds() if info.heartbeat_timeout else 30.0,
        workflow_id=info.workflow_id or "",
    )


def _is_given_up(error: ApplicationError) -> bool:
    """Tell whether the workflow asked not to repeat this error: a list of qualities is split instead."""
    policy = activity.info().retry_policy
    return policy is not None and error.type in (policy.non_retryable_error_types or ())


def failure_of(error: ApplicationError) -> StepFailure | None:
    first = error.details[0] if error.details else None
    return first if isinstance(first, StepFailure) else None
