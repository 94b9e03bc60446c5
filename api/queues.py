"""GET /api/queues: what waits for whom, and for how long, as Temporal counts it."""

import asyncio
import time
from datetime import timedelta

import structlog
from fastapi import APIRouter, Request
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue as QueueName
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest, DescribeTaskQueueResponse
from temporalio.client import Client

from api.errors import away, is_database_away
from api.openapi import errors
from api.parts import Here, Parts
from api.schemas_queues import Queue, Queues
from api.security import AdminOnly
from contracts.queues import TaskQueue
from mirror.reads_metrics import running_steps

log = structlog.get_logger(__name__)
router = APIRouter(prefix="/api/queues", tags=["workers"], dependencies=[AdminOnly], responses=errors(401, 403, 421))

FRESH_S = 1.0  # however many pages are open, Temporal is asked once a second
LIMIT_S = 4.0
KINDS = (TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY, TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW)


class Backlogs:
    """The last look at the queues; one at a time looks again."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._looked_at = float("-inf")
        self._queues = Queues(items=())

    async def look(self, here: Parts) -> Queues:
        async with self._lock:
            if time.monotonic() - self._looked_at >= FRESH_S:
                self._queues = await _look(here)
                self._looked_at = time.monotonic()
            return self._queues


async def _look(here: Parts) -> Queues:
    asked = [(queue, kind) for queue in TaskQueue for kind in KINDS]
    try:
        async with asyncio.timeout(LIMIT_S):
            told = await asyncio.gather(*(_describe(here.temporal, *each) for each in asked))
    except (TimeoutError, RuntimeError) as error:  # RuntimeError: the SDK's word for "cannot connect"
        raise away(
            "TEMPORAL_UNAVAILABLE", "Temporal does not answer right now. Please try again in a moment."
        ) from error
    running = await _running(here)
    found: dict[TaskQueue, list[DescribeTaskQueueResponse]] = {queue: [] for queue in TaskQueue}
    for (queue, _), answer in zip(asked, told, strict=True):
        found[queue].append(answer)
    return Queues(items=tuple(_queue(queue, answers, running) for queue, answers in found.items()))


def _queue(queue: TaskQueue, answers: list[DescribeTaskQueueResponse], running: dict[str, int] | None) -> Queue:
    stats = [answer.stats for answer in answers]
    backlog = sum(each.approximate_backlog_count for each in stats)
    ages = [each.approximate_backlog_age.ToTimedelta().total_seconds() for each in stats]
    return Queue(
        queue=queue,
        backlog=backlog,
        oldest_wait_seconds=max(ages) if backlog else 0.0,
        running=None if running is None else running.get(queue, 0),
        # A process that has just restarted is still listed as it was before, too.
        workers=len({poller.identity for answer in answers for poller in answer.pollers}),
        added_per_second=round(sum(each.tasks_add_rate for each in stats), 3),
        begun_per_second=round(sum(each.tasks_dispatch_rate for each in stats), 3),
    )


async def _describe(temporal: Client, queue: TaskQueue, kind: "TaskQueueType.ValueType") -> DescribeTaskQueueResponse:
    return await temporal.workflow_service.describe_task_queue(
        DescribeTaskQueueRequest(
            namespace=temporal.namespace,
            task_queue=QueueName(name=queue),
            task_queue_type=kind,
            report_stats=True,
        ),
        timeout=timedelta(seconds=LIMIT_S),
    )


async def _running(here: Parts) -> dict[str, int] | None:
    """Count what is held; Temporal's figures are worth showing without it."""
    try:
        async with here.database.read() as session:
            return await running_steps(session)
    except Exception as error:
        if not is_database_away(error):
            raise
        log.warning("queues_without_database", error=type(error).__name__)
        return None


@router.get("", summary="What waits, queue by queue", responses=errors(422, 503))
async def queues(request: Request, here: Here) -> Queues:
    """Give the backlog and the oldest wait of each task queue; the figures are a second old at most."""
    backlogs: Backlogs = request.app.state.backlogs
    return await backlogs.look(here)
