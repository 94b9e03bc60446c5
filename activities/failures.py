"""The one place that decides what a failure means: our errors become Temporal's, once.

Unknown exceptions are retryable: a wrong guess costs minutes, the other way round it costs a video
(docs/decisions/0001-unknown-errors-are-retryable.md).
"""

import asyncio
import errno
import logging
import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Protocol

from temporalio import activity
from temporalio.exceptions import ApplicationError, CancelledError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from activities.outage import Check, is_tried_for_ever, outage
from activities.pulse import pulsing
from contracts.errors import (
    SENTENCE_LIMIT,
    Drained,
    FailureKind,
    InternalTransient,
    ScratchFull,
    VlogError,
    WorkerBroken,
)
from contracts.steps import StepFailure, StepRequest

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
    known = error if isinstance(error, VlogError) else _named(error)
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


def _named(error: BaseException) -> VlogError:
    """Name what Python itself raised; its text may hold paths, so only its type is told."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return ScratchFull("The disk for work in progress is full.")
    return InternalTransient(f"Unexpected {type(error).__name__}.")


class Health(Protocol):
    """Who knows whether this worker can do its work at all."""

    def went_well(self, queue: str) -> None: ...

    async def is_ours(self, queue: str, error: VlogError, build: str) -> bool:
        """Tell whether a step failed because of this worker, whatever it was given; `build` is the ffmpeg it used."""

    def again_in_s(self, queue: str) -> float:
        """Say when such a step had better come again."""


class FailureInterceptor(Interceptor):
    """One per worker process: translates failures, and hands running steps back when there is no time to drain."""

    def __init__(self, *, first_delay_s: float = FIRST_DELAY_S) -> None:
        self.health: Health | None = None  # nobody: every failure is the step's own
        self.storage: Check | None = None  # nobody's: whoever failed was answered
        self._first_delay_s = first_delay_s
        self._running: dict[asyncio.Task[Any], str] = {}  # with the queue each came from
        self._judged: set[asyncio.Task[Any]] = set()  # they have failed: there is nothing left to stop
        self._stopping_now = False
        self._handing_back: dict[str, str] = {}  # queues that are served no more, and why

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Translate(next, self, self.health, self.storage, self._first_delay_s)

    def hand_back_now(self) -> None:
        """Stop every step at once; what it has stored stays, and the rest costs nobody an attempt."""
        self._stopping_now = True
        for task in self._running:
            task.cancel()

    def hand_back(self, queue: str, why: str) -> None:
        """Stop every step of one queue in the same way, and those that were on their way here when they come."""
        self._handing_back[queue] = why
        for task, came_from in self._running.items():
            if came_from == queue and task not in self._judged:
                task.cancel()

    def take_again(self, queue: str) -> None:
        self._handing_back.pop(queue, None)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep hold of the step that runs in this task."""
        task = asyncio.current_task()
        assert task is not None  # activities are coroutines
        queue = activity.info().task_queue
        self._running[task] = queue
        try:
            if self._stopping_now or queue in self._handing_back:
                raise asyncio.CancelledError
            yield
        finally:
            del self._running[task]

    @contextmanager
    def judged(self) -> Iterator[None]:
        """Let a step that has failed hear whose fault it was, also when the answer is that its queue is closed."""
        task = asyncio.current_task()
        assert task is not None
        self._judged.add(task)
        try:
            yield
        finally:
            self._judged.discard(task)

    def drained(self) -> str:
        """Say why a step was stopped with its worker; nothing when its job has cancelled or paused it."""
        why = self._handing_back.get(activity.info().task_queue, "")
        details = activity.cancellation_details()
        if self._stopping_now or (details is not None and details.worker_shutdown):
            return why or "The worker was stopped."
        return why


class _Translate(ActivityInboundInterceptor):
    def __init__(
        self,
        next: ActivityInboundInterceptor,
        drain: FailureInterceptor,
        health: Health | None,
        storage: Check | None,
        first_delay_s: float,
    ) -> None:
        super().__init__(next)
        self._drain, self._health, self._storage, self._first_delay_s = drain, health, storage, first_delay_s

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        try:
            with self._drain.held():
                return await self._judged(input)
        except asyncio.CancelledError as error:
            why = self._drain.drained()
            if not why:
                raise
            # Temporal would count the attempt: three deploys would fail a healthy video. What is no step of a job is
            # simply tried again: nobody schedules it anew.
            drained = Drained(why) if _is_step(input) else InternalTransient(why)
            raise translate(drained, activity.info().attempt) from error
        except (ApplicationError, CancelledError):
            raise
        except Exception as error:
            if not isinstance(error, VlogError):
                log.exception("unexpected error in step %s", activity.info().activity_type)
            raise translate(error, activity.info().attempt, self._first_delay_s) from error

    async def _judged(self, input: ExecuteActivityInput) -> Any:
        """Run the step; what fails because its storage is away or its worker broken costs the video no attempt."""
        queue = activity.info().task_queue
        is_step = _is_step(input)
        try:
            result = await self.next.execute_activity(input)
        except (ApplicationError, CancelledError):
            raise
        except Exception as error:
            known = error if isinstance(error, VlogError) else _named(error)
            if is_step and (away := await self._outage(known)) is not None:
                raise away from error
            if self._health is None or not is_step:
                raise
            with self._drain.judged():
                async with pulsing():
                    ours = await self._health.is_ours(queue, known, getattr(input.args[0], "ffmpeg", ""))
            if not ours:
                raise
            broken = WorkerBroken(f"The worker is broken: {known.sentence}", detail=known.detail)
            broken.retry_after_s = self._health.again_in_s(queue)
            raise broken from error
        if self._health is not None and is_step:
            self._health.went_well(queue)
        return result

    async def _outage(self, error: VlogError) -> VlogError | None:
        """Tell whether the storage is away, whatever the step says: who cannot read calls a source unreadable."""
        if self._storage is None or error.kind is FailureKind.LATER or is_tried_for_ever():
            return None
        async with pulsing():
            away = await outage(self._storage)
        if away is not None:
            away.detail = error.detail or error.sentence
            log.warning("%s, so that %s waits", away.sentence.rstrip("."), activity.info().activity_type)
        return away


def _is_step(input: ExecuteActivityInput) -> bool:
    return bool(input.args) and isinstance(input.args[0], StepRequest)
