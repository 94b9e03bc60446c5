"""GET /metrics: everything there is to watch, in one scrape, also while a neighbour is away.

What happened is counted in Postgres, so it survives restarts of whatever process; what this process answers is its own.
"""

import asyncio
import time
from collections.abc import Awaitable
from typing import Annotated, TypeVar

import structlog
from fastapi import APIRouter, Depends, Header, Request, Response
from temporalio.client import Client

from api.exposition import CONTENT_TYPE, Family, Sample, by, one, render
from api.health import queue_depth
from api.measuring import Measured
from api.openapi import errors
from api.parts import Here, Parts
from api.security import require_admin
from contracts.errors import RETRIES_EXHAUSTED
from contracts.queues import TaskQueue
from mirror.reads_metrics import Numbers, numbers

log = structlog.get_logger(__name__)

FRESH_S = 5.0  # several who scrape cost one look
LIMIT_S = 4.0
T = TypeVar("T")


async def require_scraper(
    request: Request,
    x_admin_secret: Annotated[str | None, Header(description="VLOG_ADMIN_SECRET, when one is set")] = None,
    authorization: Annotated[str | None, Header(description="`Bearer` and the same secret, as Prometheus can")] = None,
) -> None:
    scheme, _, token = (authorization or "").partition(" ")
    await require_admin(request, x_admin_secret or (token.strip() if scheme.lower() == "bearer" else None))


router = APIRouter(tags=["health"], dependencies=[Depends(require_scraper)], responses=errors(401, 403, 421))


class Watched:
    """The last look at the neighbours; one at a time looks again."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._looked_at = float("-inf")
        self._families: list[Family] = []

    async def families(self, here: Parts) -> list[Family]:
        async with self._lock:
            if time.monotonic() - self._looked_at >= FRESH_S:
                self._families = await _look(here)
                self._looked_at = time.monotonic()
            return self._families


async def _look(here: Parts) -> list[Family]:
    found, depths = await asyncio.gather(_or_none(_numbers(here)), _or_none(_depths(here.temporal)))
    up = {"postgres": found is not None, "temporal": depths is not None}
    families = [by("vlog_up", "gauge", "Whether a neighbour answers.", "part", up)]
    if depths is not None:
        about = "Steps that wait in a task queue, as Temporal says."
        families.append(by("vlog_queue_depth", "gauge", about, "queue", depths))
    return families + (shown(found) if found is not None else [])


async def _or_none(question: Awaitable[T]) -> T | None:
    try:
        async with asyncio.timeout(LIMIT_S):
            return await question
    except Exception as error:
        log.warning("metrics_incomplete", error=type(error).__name__)
        return None


async def _numbers(here: Parts) -> Numbers:
    async with here.database.read() as session:
        return await numbers(session)


async def _depths(temporal: Client) -> dict[str, float]:
    depths = await asyncio.gather(*(queue_depth(temporal, queue) for queue in TaskQueue))
    return dict(zip((queue.value for queue in TaskQueue), depths, strict=True))


def shown(found: Numbers) -> list[Family]:
    """Name what the mirror knows; the first six names are documented."""
    counts: dict[str, int] = {}
    retries: dict[str, int] = {}
    failures: dict[str, int] = {}
    steps: list[Sample] = []
    for each in found.events:
        counts[each.event] = counts.get(each.event, 0) + each.count
        if each.event == "step.retrying":
            retries[each.code] = each.count
        elif each.event == "job.failed":
            failures[each.code] = each.count
        elif each.event.endswith(".done"):
            labels = {"step": each.event.removesuffix(".done")}
            steps += [Sample(each.seconds, labels, "_sum"), Sample(each.count, labels, "_count")]
    stale = {"stale": counts.get("requeued:stale", 0) + counts.get("step.lost", 0)}
    conflicts = "News of an attempt that a newer one had replaced: somebody else had the step by then."
    return [
        one("worker_heartbeats_total", "counter", "Signs of life that workers have written.", found.heartbeats),
        one(
            *("worker_heartbeat_failures_total", "counter", "Those that could not be written, told of afterwards."),
            found.heartbeat_failures,
        ),
        by(
            *("worker_recovered_jobs_total", "counter", "Steps taken from a worker that fell silent.", "reason"),
            stale,
        ),
        by(*("worker_retry_attempts_total", "counter", "Attempts that failed and were tried again.", "code"), retries),
        one("worker_concurrent_jobs", "gauge", "Jobs of which a worker holds a step now.", found.concurrent_jobs),
        one("worker_acquire_conflicts_total", "counter", conflicts, found.acquire_conflicts),
        by(*("vlog_jobs_failed_total", "counter", "Jobs that failed for good.", "code"), failures),
        one(
            *("vlog_jobs_max_retries_exceeded_total", "counter", "Those of them that had used up their tries."),
            failures.get(RETRIES_EXHAUSTED, 0),
        ),
        by("vlog_events_total", "counter", "Lines of the event log (docs/lifecycle.md).", "event", counts),
        Family("vlog_step_duration_seconds", "summary", "How long steps took that ended well.", steps),
        by(*("vlog_steps_running", "gauge", "Steps that a worker holds now.", "queue"), found.running_steps),
        by("vlog_videos", "gauge", "Videos that are not deleted.", "status", _words(found.videos)),
        by("vlog_jobs", "gauge", "Jobs, by their derived state.", "state", _words(found.jobs)),
        one(
            *("vlog_oldest_waiting_job_seconds", "gauge", "How long the oldest job waits that nobody has begun."),
            found.oldest_waiting_s,
        ),
        by("vlog_workers", "gauge", "Workers that were ever registered.", "status", _words(found.workers)),
        by(
            *("vlog_webhook_deliveries", "gauge", "Deliveries of the last 30 days.", "status"),
            _words(found.deliveries),
        ),
    ]


def _words(counts: dict[T, int]) -> dict[str, float]:
    return {str(word): count for word, count in counts.items()}


_TEXT = {
    "description": "Prometheus' text format",
    "content": {"text/plain": {"example": 'vlog_up{part="postgres"} 1\n'}},
}


@router.get("/metrics", summary="For Prometheus", response_model=None, responses={200: _TEXT, **errors(422)})
async def metrics(request: Request, here: Here) -> Response:
    """Give every metric of docs/metrics.md. A neighbour that is away is told of by `vlog_up`, with status 200."""
    measured: Measured = request.app.state.measured
    watched: Watched = request.app.state.watched
    families = await watched.families(here) + measured.families()
    return Response(render(families), media_type=None, headers={"content-type": CONTENT_TYPE})
