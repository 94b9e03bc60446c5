"""The one place that decides what a failure means: our errors become Temporal's, once.

Unknown exceptions are retryable: a wrong guess costs minutes, the other way round it costs a video
(docs/decisions/0001-unknown-errors-are-retryable.md).
"""

import asyncio
import logging
import random
from datetime import timedelta
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError, CancelledError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from contracts.errors import SENTENCE_LIMIT, Drained, FailureKind, InternalTransient, VlogError
from contracts.steps import StepFailure

log = logging.getLogger(__name__)

FIRST_DELAY_S = 5.0
LONGEST_DELAY_S = 60.0
DETAIL_LIMIT = 4000


def backoff_s(attempt: int, spread: float, first_s: float = FIRST_DELAY_S) -> float:
    """Wait 5 s, doubling to 60 s, give or take a tenth; `spread` is in -1…1."""
    delay = min(LONGEST_DELAY_S, first_s * 2.0 ** (attempt - 1))
    return delay * (1 + 0.1 * spread)


def translate(error: BaseException, attempt: int, first_delay_s: float = FIRST_DELAY_S) -> ApplicationError:
    """Say a failure in Temporal's words; the type is our code, the detail a StepFailure."""
    known = error if isinstance(error, VlogError) else InternalTransient(f"Unexpected {type(error).__name__}.")
    failure = StepFailure(
        code=known.code,
        kind=known.kind,
        sentence=known.sentence[:SENTENCE_LIMIT],
        detail=known.detail[-DETAIL_LIMIT:],
        retry_after_s=known.retry_after_s,
        attempt=attempt,
    )
    # Temporal's own backoff has no jitter: a storage outage would make every worker come back in step.
    delay = backoff_s(attempt, random.uniform(-1, 1), first_delay_s)
    return ApplicationError(
        failure.sentence,
        failure,
        type=failure.code,
        non_retryable=known.kind is not FailureKind.RETRYABLE,
        next_retry_delay=timedelta(seconds=delay) if known.kind is FailureKind.RETRYABLE else None,
    )


class FailureInterceptor(Interceptor):
    def __init__(self, *, first_delay_s: float = FIRST_DELAY_S) -> None:
        self._first_delay_s = first_delay_s

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Translate(next, self._first_delay_s)


class _Translate(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, first_delay_s: float) -> None:
        super().__init__(next)
        self._first_delay_s = first_delay_s

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        try:
            return await self.next.execute_activity(input)
        except asyncio.CancelledError as error:
            details = activity.cancellation_details()
            if details is None or not details.worker_shutdown:
                raise
            # Temporal would count the attempt: three deploys would fail a healthy video.
            raise translate(Drained("The worker was stopped."), activity.info().attempt) from error
        except (ApplicationError, CancelledError):
            raise
        except Exception as error:
            if not isinstance(error, VlogError):
                log.exception("unexpected error in step %s", activity.info().activity_type)
            raise translate(error, activity.info().attempt, self._first_delay_s) from error
