"""The way between workers that reach only this API and Temporal: its task calls, one for one (decision 0015).

Nothing is remembered here but what was heard a moment ago. Any API process answers any call about any claim.
"""

import asyncio
import contextlib
import time
import uuid
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import Any, TypeVar

import structlog
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue as QueueName
from temporalio.api.workflowservice.v1 import (
    PollActivityTaskQueueRequest,
    PollActivityTaskQueueResponse,
    RecordActivityTaskHeartbeatRequest,
    RespondActivityTaskCanceledRequest,
    RespondActivityTaskCompletedRequest,
    RespondActivityTaskFailedRequest,
    ShutdownWorkerRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from api.claim_errors import claim_errors, connecting
from api.claims import Held, folders_of, source_of
from api.errors import ApiError
from api.step_failures import as_error, as_failure, drained
from api.unheard import Unheard
from contracts.errors import WorkerFull
from contracts.gateway import LEAST_WAIT_S, REMOTE_STEPS
from contracts.message import Message
from contracts.queues import TaskQueue
from contracts.steps import StepFailure, StepProgress, StepRequest
from media.weights import need_of

log = structlog.get_logger(__name__)

T = TypeVar("T")

RPC_S = timedelta(seconds=10)
ENDING_S = 1.5  # less than the server gives its open requests when it stops
ALIVE_S = 5.0  # a claim that was alive so long ago is taken to be
MOST_ALIVE = 10_000
GIVE_BACK_TRIES = 5
# Waits end at whole seconds, those of everybody: the service wakes up once for all of a second, not for each alone.
TOGETHER_S = 1.0
# While the code is rolled out; nothing failed, so it costs no attempt, and who took it would take it again at once.
NOT_UNDERSTOOD = "The step is of another version than this API: another API or a local worker takes it."
NOT_UNDERSTOOD_S = 15.0

# A poll that found nothing in time, as an older server or a proxy may say it.
_NOTHING = frozenset({RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED})


@dataclass(frozen=True)
class Taken:
    """A step that Temporal has given out."""

    held: Held
    request: StepRequest
    activity_id: str  # Temporal's name for it


class Gateway:
    """One per API process."""

    def __init__(self, temporal: Client) -> None:
        self._temporal = temporal
        self._stopping = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._alive: OrderedDict[bytes, float] = OrderedDict()
        self._unheard = Unheard(temporal, self._keep)

    def close(self) -> None:
        """Answer everybody who waits for work; what was on its way to them goes back."""
        self._stopping.set()
        self._unheard.close()

    async def closed(self) -> None:
        """Wait until what was on its way has gone back."""
        self.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=ENDING_S)

    # --- claim --------------------------------------------------------------------------------------------------

    async def claim(
        self,
        queue: TaskQueue,
        worker: str,
        wait_s: float,
        hung_up: Callable[[], Awaitable[None]],
        left: asyncio.Event,
    ) -> Taken | None:
        """Wait for a step; None when there was none, when the caller has left, or when this process stops."""
        # A task of its own: when the caller's is cancelled, what Temporal has given out must still go back.
        taking = self._keep(self._take(queue, worker, wait_s, left))
        watching = asyncio.create_task(_when(hung_up, left))
        handed_over = False
        try:
            taken = await asyncio.shield(taking)
            handed_over = not left.is_set()
            return taken if handed_over else None
        finally:
            left.set()
            watching.cancel()
            if not handed_over:  # it hung up, even at the very last moment
                self._keep(self._take_back(taking))

    async def _take_back(self, taking: "asyncio.Task[Taken | None]") -> None:
        with contextlib.suppress(ApiError, RPCError):
            taken = await taking
            if taken is not None:
                await self.give_back(taken)

    async def give_back(self, taken: Taken) -> bool:
        """Let somebody else have a step that nobody was told of; False when that did not happen."""
        # Kept: the request of which this is the end may be cancelled.
        return await asyncio.shield(
            self._keep(self._give_back(taken.held.token, taken.held.attempt, taken.held.step_key))
        )

    def answered(self, taken: Taken, lost: Callable[[], None]) -> None:
        """Expect a word of a step whose answer is on its way; when none comes it goes back, and `lost` hears of it."""

        async def give_back() -> None:
            if await self.give_back(taken):
                lost()

        if not self._stopping.is_set():
            self._unheard.watch(taken.held, taken.activity_id, give_back)

    async def _take(self, queue: TaskQueue, worker: str, wait_s: float, left: asyncio.Event) -> Taken | None:
        # Its own for every poll: after it was shut down a key gets no answers but empty ones, at once.
        instance = f"{worker}/{uuid.uuid4().hex}"
        if wait_s >= LEAST_WAIT_S + TOGETHER_S:
            wait_s -= (time.monotonic() + wait_s) % TOGETHER_S
        polling = self._keep(self._poll(queue, worker, instance, wait_s))
        gone = [asyncio.create_task(event.wait()) for event in (left, self._stopping)]
        try:
            await asyncio.wait([polling, *gone], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for waiting in gone:
                waiting.cancel()
        if not polling.done():
            # Not cancelled: that loses what Temporal sends at that moment. Told to end, the poll ends by itself.
            await self._end_poll(queue, worker, instance)
            await asyncio.wait([polling], timeout=None if not self._stopping.is_set() else ENDING_S)
            if not polling.done():
                return None
        task = polling.result()
        if task is None:
            return None
        if left.is_set() or self._stopping.is_set():
            await self._give_back(task.task_token, task.attempt, task.activity_id)
            return None
        return await self._read(queue, task)

    async def _poll(
        self, queue: TaskQueue, worker: str, instance: str, wait_s: float
    ) -> PollActivityTaskQueueResponse | None:
        request = PollActivityTaskQueueRequest(
            namespace=self._temporal.namespace,
            identity=worker,
            worker_instance_key=instance,
            task_queue=QueueName(name=queue),
        )
        try:
            with connecting():
                task = await self._temporal.workflow_service.poll_activity_task_queue(
                    request, timeout=timedelta(seconds=wait_s)
                )
        except RPCError as error:
            if error.status in _NOTHING:
                return None
            raise
        return task if task.task_token else None

    async def _end_poll(self, queue: TaskQueue, worker: str, instance: str) -> None:
        request = ShutdownWorkerRequest(
            namespace=self._temporal.namespace,
            identity=worker,
            worker_instance_key=instance,
            task_queue=queue,
            task_queue_types=[TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY],
            reason="nobody waits for the answer any more",
        )
        with contextlib.suppress(RPCError, RuntimeError):  # then it ends when its time is over
            await self._temporal.workflow_service.shutdown_worker(request, timeout=RPC_S)

    async def _give_back(self, token: bytes, attempt: int, step: str) -> bool:
        """Let the workflow schedule a step anew that reached nobody, at no attempt; False when that did not happen."""
        for tried in range(GIVE_BACK_TRIES):
            try:
                await self._fail(token, drained(attempt))
                log.info("step_given_back", step=step)
                self._alive.pop(token, None)
                return True
            except RPCError as error:
                if error.status is RPCStatusCode.NOT_FOUND:
                    return False
                await asyncio.sleep(0.2 * 2**tried)
        log.warning("step_not_given_back", step=step)
        return False

    async def _read(self, queue: TaskQueue, task: PollActivityTaskQueueResponse) -> Taken | None:
        """Read what is asked; what only newer code understands goes back to the queue, for who does."""
        try:
            known = REMOTE_STEPS[task.activity_type.name]
            [request] = await self._temporal.data_converter.decode(task.input.payloads, [known.request])
        except (KeyError, RuntimeError, ValueError, TypeError) as error:
            log.error("step_not_understood", step=task.activity_type.name, error=type(error).__name__)
            later = as_failure(WorkerFull.code, NOT_UNDERSTOOD, retry_after_s=NOT_UNDERSTOOD_S)
            with contextlib.suppress(RPCError):  # then its heartbeats run out
                await self._fail(task.task_token, later.model_copy(update={"attempt": task.attempt}))
            return None
        held = Held(
            token=task.task_token,
            activity=task.activity_type.name,
            job_id=request.job_id,
            video_id=request.video_id,
            step=request.step,
            step_key=request.step_key,
            generation=request.generation,
            attempt=task.attempt,
            started_at=task.started_time.ToDatetime(UTC),
            scheduled_at=task.current_attempt_scheduled_time.ToDatetime(UTC),
            qualities=request.step_qualities,
            span=request.step_span,
            tries_before=request.tries_before,
            max_attempts=task.retry_policy.maximum_attempts,
            gives_up_on=tuple(task.retry_policy.non_retryable_error_types),
            queue=queue,
            slots=need_of(request).slots,
            heartbeat_timeout_s=task.heartbeat_timeout.ToTimedelta().total_seconds(),
            workflow_id=task.workflow_execution.workflow_id,
            source_key=source_of(request),
            folders=folders_of(request),
        )
        self._heard_of(held)
        return Taken(held, request, task.activity_id)

    # --- while it is held ---------------------------------------------------------------------------------------

    async def beat(self, held: Held, worker: str, progress: StepProgress | None) -> bool:
        """Hold a claim for another heartbeat timeout; True when the step is to be stopped."""
        details = await self._temporal.data_converter.encode_wrapper([progress] if progress else [])
        with claim_errors():
            answer = await self._temporal.workflow_service.record_activity_task_heartbeat(
                RecordActivityTaskHeartbeatRequest(
                    namespace=self._temporal.namespace, task_token=held.token, details=details, identity=worker
                ),
                timeout=RPC_S,
            )
        self._heard_of(held)
        self._unheard.heard(held.token)
        return answer.cancel_requested

    async def insist(self, held: Held, worker: str) -> None:
        """Raise 409 unless the claim lives; who reads and writes is alive, so that it holds the claim as well."""
        self._unheard.heard(held.token)
        lately_s = min(ALIVE_S, held.heartbeat_timeout_s / 3)
        if time.monotonic() - self._alive.get(held.token, -lately_s) >= lately_s:
            await self.beat(held, worker, None)

    # --- its end ------------------------------------------------------------------------------------------------

    async def complete(self, held: Held, worker: str, result: Message) -> None:
        payloads = await self._temporal.data_converter.encode_wrapper([result])
        with claim_errors():
            await self._temporal.workflow_service.respond_activity_task_completed(
                RespondActivityTaskCompletedRequest(
                    namespace=self._temporal.namespace, task_token=held.token, result=payloads, identity=worker
                ),
                timeout=RPC_S,
            )
        self._forget(held)

    async def fail(self, held: Held, worker: str, failure: StepFailure, retry_delay_s: float | None) -> None:
        with claim_errors():
            await self._fail(held.token, failure, worker, retry_delay_s)
        self._forget(held)

    async def cancelled(self, held: Held, worker: str) -> None:
        with claim_errors():
            await self._temporal.workflow_service.respond_activity_task_canceled(
                RespondActivityTaskCanceledRequest(
                    namespace=self._temporal.namespace, task_token=held.token, identity=worker
                ),
                timeout=RPC_S,
            )
        self._forget(held)

    async def _fail(
        self, token: bytes, failure: StepFailure, worker: str = "", retry_delay_s: float | None = None
    ) -> None:
        request = RespondActivityTaskFailedRequest(
            namespace=self._temporal.namespace, task_token=token, identity=worker or self._temporal.identity
        )
        await self._temporal.data_converter.encode_failure(as_error(failure, retry_delay_s), request.failure)
        await self._temporal.workflow_service.respond_activity_task_failed(request, timeout=RPC_S)

    # --- memory -------------------------------------------------------------------------------------------------

    def _heard_of(self, held: Held) -> None:
        self._alive[held.token] = time.monotonic()
        self._alive.move_to_end(held.token)
        while len(self._alive) > MOST_ALIVE:
            self._alive.popitem(last=False)

    def _forget(self, held: Held) -> None:
        self._alive.pop(held.token, None)
        self._unheard.heard(held.token)

    def _keep(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


async def _when(happens: Callable[[], Awaitable[None]], event: asyncio.Event) -> None:
    await happens()
    event.set()
