"""Questions about workers."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Boolean, ColumnElement, and_, cast, column, exists, func, not_, or_, select, true
from sqlalchemy.dialects.postgresql import JSONB

from contracts.gateway import MOST_WAIT_S
from contracts.ids import JobId
from contracts.plan import Capacity, IdleGpu
from contracts.queues import Pool, TaskQueue
from contracts.states import Codec, QualityStatus, StepOutcome, Tier, WorkerStatus, WorkerType
from mirror.sessions import AnySession
from mirror.tables import Job, JobStep, QualityProgressRow, Worker, WorkerApiKey, unfinished
from mirror.views import View

MOST_SLOTS = 1024


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
    told = await s.execute(
        select(Worker.capabilities["slots"]["cpu"].label("slots"), Worker.capabilities["ffmpeg"].label("ffmpeg")).where(
            _serves(Pool.CPU, heard_within_s)
        )
    )
    found = [(slots, _builds(row.ffmpeg)) for row in told if (slots := _slots(row.slots))]
    each = tuple(sorted((slots for slots, _ in found), reverse=True))
    builds = Counter(build for _, has in found for build in has)
    return Capacity(workers=len(each), slots=sum(each), each=each, builds=dict(builds))


async def jobs_beside(s: AnySession, job_id: JobId) -> int:
    """Count the jobs that want slots and do not let this one pass, itself among them."""
    mine = await s.scalar(select(Job.tier).where(Job.id == job_id))
    as_urgent = [tier for tier in Tier if mine is None or tier.priority <= mine.priority]
    found = await s.scalar(
        select(func.count()).select_from(Job).where(unfinished(), Job.paused_at.is_(None), Job.tier.in_(as_urgent))
    )
    return max(1, found or 0)


async def others_serve(s: AnySession, worker_id: str, pool: Pool, *, heard_within_s: float) -> bool:
    """Tell whether somebody else was heard of lately who takes such work."""
    found = await s.execute(
        select(Worker.id)
        .where(
            Worker.worker_id != worker_id,
            _serves(pool, heard_within_s),
            Worker.capabilities["pools"].contains([pool]),
        )
        .limit(1)
    )
    return found.first() is not None


async def idle_gpus(s: AnySession, *, heard_within_s: float, but: JobId) -> list[IdleGpu]:
    """Name the GPU workers with room that were heard of lately; one job's own renditions are left out of account.

    A rendition has its slot from its first span to its last, also in the moment between two of them and before the
    first one is started: else all of many videos that come at once would go to one idle GPU.
    """
    held = (
        select(func.count())
        .where(
            JobStep.worker_id == Worker.worker_id,
            JobStep.queue == TaskQueue.GPU,
            JobStep.outcome == StepOutcome.RUNNING,
            JobStep.claim_expires_at > func.now(),
        )
        .correlate(Worker)
        .scalar_subquery()
    )
    seen = await s.execute(
        select(
            Worker.capabilities["slots"]["gpu"].label("slots"),
            held.label("held"),
            Worker.capabilities["encoders"].label("encoders"),
        )
        .where(_serves(Pool.GPU, heard_within_s))
        .order_by(Worker.id)
    )
    found = [(_slots(row.slots) - row.held, row.held, _encoders(row.encoders)) for row in seen if _slots(row.slots)]
    waiting = max(0, await _promised(s, but) - sum(held for _, held, _ in found))
    gpus = []
    for free, _, encoders in found:
        taken = min(max(free, 0), waiting)
        waiting -= taken
        if free > taken and encoders:
            gpus.append(IdleGpu(slots=free - taken, encoders=encoders))
    return gpus


async def _promised(s: AnySession, but: JobId) -> int:
    """Count the renditions under way that are a GPU's."""
    rendition = (
        func.jsonb_array_elements(Job.plan["renditions"]).table_valued(column("value", JSONB)).lateral("rendition")
    )
    progress = and_(
        QualityProgressRow.job_id == Job.id, QualityProgressRow.quality == rendition.c.value["quality"].astext
    )
    done = (QualityStatus.COMPLETED, QualityStatus.FAILED, QualityStatus.SKIPPED)
    found = await s.execute(
        select(func.count())
        .select_from(Job)
        .join(rendition, true())
        .join(QualityProgressRow, progress)
        .where(
            unfinished(),
            Job.paused_at.is_(None),
            Job.id != but,
            cast(rendition.c.value["gpu"].astext, Boolean),
            QualityProgressRow.status.not_in(done),
        )
    )
    return found.scalar_one()


def is_there(heard_within_s: float) -> ColumnElement[bool]:
    """Say that a worker was heard of lately, and that people let it work."""
    return and_(
        Worker.status.not_in([WorkerStatus.OFFLINE, WorkerStatus.DISABLED]),
        Worker.last_heartbeat > _ago(heard_within_s),
    )


def has_work_left() -> ColumnElement[bool]:
    """Say that a worker has not set aside all that it was started for; `orchestrate` goes on by itself."""
    unfit = Worker.pools_aside.op("||")(cast([Pool.ORCHESTRATE.value], JSONB))
    return or_(Worker.quarantined_at.is_(None), not_(Worker.capabilities["pools"].contained_by(unfit)))


def _serves(pool: Pool, heard_within_s: float) -> ColumnElement[bool]:
    """Say that a worker takes steps of a pool. One with a key comes over HTTP: it may beat and never ask for work."""
    has_key = exists().where(WorkerApiKey.worker_id == Worker.id)
    # What it asked so long ago may still wait for its answer.
    polls = or_(not_(has_key), Worker.asked_at > _ago(heard_within_s + MOST_WAIT_S))
    return and_(is_there(heard_within_s), polls, not_(Worker.pools_aside.contains([pool.value])))


def _ago(seconds: float) -> ColumnElement[datetime]:
    return func.now() - func.make_interval(0, 0, 0, 0, 0, 0, seconds)


def _slots(told: object) -> int:
    """Read a worker's own word for its slots: a number that a machine can have, or none."""
    return min(told, MOST_SLOTS) if type(told) is int and told > 0 else 0


def _builds(told: object) -> set[str]:
    """Read which ffmpegs a worker has, likewise."""
    known = told if isinstance(told, list) else []
    builds = (one.get("build") for one in known if isinstance(one, dict))
    return {build for build in builds if isinstance(build, str) and build}


def _encoders(told: object) -> dict[Codec, str]:
    """Read a worker's capabilities: they are its own words, so anything may be in them."""
    known = told if isinstance(told, dict) else {}
    return {codec: name for codec in Codec if isinstance(name := known.get(codec.value), str) and name}
