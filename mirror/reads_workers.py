"""Questions about workers."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import func, select

from contracts.media import Capacity
from contracts.states import WorkerStatus, WorkerType
from mirror.sessions import AnySession
from mirror.tables import Job, Worker
from mirror.views import View


class WorkerStatusView(View):
    """What listeners hear of a worker."""

    worker_id: str
    worker_name: str | None
    worker_type: WorkerType
    status: WorkerStatus
    current_job_id: int | None
    current_video_id: int | None
    last_heartbeat: datetime | None
    version: str | None


async def statuses(s: AnySession, worker_ids: Sequence[str] | None = None) -> list[WorkerStatusView]:
    """Read how some workers are, or all of them."""
    query = select(Worker, Job.video_id).outerjoin(Job, Job.id == Worker.current_job_id).order_by(Worker.id)
    if worker_ids is not None:
        query = query.where(Worker.worker_id.in_(worker_ids))
    same = [name for name in WorkerStatusView.model_fields if name != "current_video_id"]
    return [
        WorkerStatusView(**{name: getattr(worker, name) for name in same}, current_video_id=video_id)
        for worker, video_id in await s.execute(query)
    ]


async def capacity(s: AnySession, *, heard_within_s: float) -> Capacity:
    """Count the workers that encode and were heard of lately, and their slots."""
    lately = func.now() - func.make_interval(0, 0, 0, 0, 0, 0, heard_within_s)
    slots = Worker.capabilities["slots"]["cpu"].as_integer()
    found = await s.scalars(
        select(slots)
        .where(
            Worker.status.not_in([WorkerStatus.OFFLINE, WorkerStatus.DISABLED]),
            Worker.quarantined_at.is_(None),
            Worker.last_heartbeat > lately,
            slots > 0,
        )
        .order_by(slots.desc())
    )
    each = tuple(found)
    return Capacity(workers=len(each), slots=sum(each), each=each)


async def others_serve(s: AnySession, worker_id: str, pool: str, *, heard_within_s: float) -> bool:
    """Tell whether somebody else was heard of lately who takes such work."""
    lately = func.now() - func.make_interval(0, 0, 0, 0, 0, 0, heard_within_s)
    found = await s.execute(
        select(Worker.id)
        .where(
            Worker.worker_id != worker_id,
            Worker.status.not_in([WorkerStatus.OFFLINE, WorkerStatus.DISABLED]),
            Worker.quarantined_at.is_(None),
            Worker.last_heartbeat > lately,
            Worker.capabilities["pools"].contains([pool]),
        )
        .limit(1)
    )
    return found.first() is not None
