"""Is this process alive, and are its neighbours: Postgres, Temporal, storage."""

import asyncio
from collections.abc import Awaitable
from datetime import timedelta
from typing import TypeVar

from fastapi import APIRouter, Response
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue as QueueName
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client

from api.parts import Here
from api.schemas import Alive, Health, PartHealth
from contracts.errors import VlogError
from contracts.queues import TaskQueue
from mirror import reads
from mirror.sessions import Database
from mirror.views import HealthCounts

router = APIRouter(tags=["health"])

CHECK_S = 2.0
T = TypeVar("T")


async def _ask(question: Awaitable[T], silent: str) -> tuple[PartHealth, T | None]:
    """Ask one neighbour, within the limit; a sentence says what is wrong, never a connection string."""
    try:
        async with asyncio.timeout(CHECK_S):
            return PartHealth(ok=True), await question
    except TimeoutError:
        return PartHealth(ok=False, detail=f"{silent} within {CHECK_S:.0f} s."), None
    except VlogError as error:
        return PartHealth(ok=False, detail=error.sentence), None
    except Exception as error:
        return PartHealth(ok=False, detail=f"{silent} ({type(error).__name__})."), None


async def _counts(database: Database, silence_s: float) -> HealthCounts:
    async with database.read() as session:
        return await reads.health_counts(session, worker_silence_s=silence_s)


async def queue_depth(temporal: Client, queue: TaskQueue = TaskQueue.CPU) -> int:
    """Count the steps that wait in a queue; by default for an encoder."""
    answer = await temporal.workflow_service.describe_task_queue(
        DescribeTaskQueueRequest(
            namespace=temporal.namespace,
            task_queue=QueueName(name=queue),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
            report_stats=True,
        ),
        timeout=timedelta(seconds=CHECK_S),
    )
    return int(answer.stats.approximate_backlog_count)


@router.get("/health", summary="Alive")
async def alive() -> Alive:
    """Answer without asking anybody: for a process supervisor."""
    return Alive(status="ok")


@router.get(
    "/api/health",
    summary="Healthy: this process and its neighbours",
    responses={503: {"model": Health, "description": "A neighbour is away; its part says `ok: false`"}},
)
async def healthy(here: Here, response: Response) -> Health:
    """Ask Postgres, Temporal and storage, each for at most two seconds."""
    silence_s = here.settings.worker_offline_threshold_minutes * 60
    (postgres, counts), (temporal, depth), (storage, _) = await asyncio.gather(
        _ask(_counts(here.database, silence_s), "Postgres did not answer"),
        _ask(queue_depth(here.temporal), "Temporal did not answer"),
        _ask(here.store.check(), "Storage did not answer"),
    )
    well = postgres.ok and temporal.ok and storage.ok
    response.status_code = 200 if well else 503
    return Health(
        status="healthy" if well else "unhealthy",
        postgres=postgres,
        temporal=temporal,
        storage=storage,
        active_workers=counts.active_workers if counts else None,
        pending_jobs=counts.pending_jobs if counts else None,
        processing_jobs=counts.processing_jobs if counts else None,
        queue_depth=depth,
    )
