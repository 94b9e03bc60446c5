"""Questions about the registry: who is there, what each does, whose key this is."""

from datetime import timedelta
from typing import Any

from sqlalchemy import Select, bindparam, func, select

from contracts.ids import JobId
from contracts.states import WorkerStatus, WorkerType
from mirror import reads
from mirror.cursors import cursor_of, id_of
from mirror.reads_speed import Speed, speeds
from mirror.registry import used_before
from mirror.sessions import AnySession, Glance
from mirror.tables import Job, JobStep, Worker, WorkerApiKey
from mirror.views import Page
from mirror.views_workers import StoredKey, WorkerDetailView, WorkerKeyView, WorkerStepView, WorkerView
from mirror.writes_workers import standing_of

LAST_STEPS = 20
MOST_KEYS = 100
LATELY = timedelta(seconds=90)  # three heartbeats, and less than it takes to be thought silent


async def workers_page(
    s: AnySession,
    *,
    limit: int = 50,
    cursor: str | None = None,
    status: WorkerStatus | None = None,
    worker_type: WorkerType | None = None,
    name: str | None = None,
) -> Page[WorkerView]:
    """List workers, the newest registration first."""
    query = _workers().where(Worker.id < id_of(cursor))
    if status is not None:
        query = query.where(Worker.status == status)
    if worker_type is not None:
        query = query.where(Worker.worker_type == worker_type)
    if name is not None:
        query = query.where(Worker.worker_name == name)
    rows = (await s.execute(query.order_by(Worker.id.desc()).limit(limit + 1))).all()
    more = len(rows) > limit
    fast = await speeds(s, [row.worker_id for row, _ in rows[:limit]])
    return Page[WorkerView](
        items=tuple(WorkerView(**_plain(row, video, fast[row.worker_id])) for row, video in rows[:limit]),
        next_cursor=cursor_of(rows[limit - 1][0].id) if more else None,
    )


async def worker(s: AnySession, worker_id: str) -> WorkerDetailView | None:
    """Find a worker, with its keys, its job and what it did last."""
    if "\x00" in worker_id:
        return None
    found = (await s.execute(_workers().where(Worker.worker_id == worker_id))).one_or_none()
    if found is None:
        return None
    row, video = found
    keys = await s.execute(
        select(WorkerApiKey).where(WorkerApiKey.worker_id == row.id).order_by(WorkerApiKey.id.desc()).limit(MOST_KEYS)
    )
    steps = await s.execute(
        select(JobStep).where(JobStep.worker_id == worker_id).order_by(JobStep.id.desc()).limit(LAST_STEPS)
    )
    return WorkerDetailView(
        **_plain(row, video, (await speeds(s, [worker_id]))[worker_id]),
        keys=tuple(_show_key(key) for key in keys.scalars()),
        job=await reads.job(s, JobId(row.current_job_id)) if row.current_job_id is not None else None,
        steps=tuple(_show_step(step) for step in steps.scalars()),
    )


async def keys_like(glance: Glance, prefix: str) -> list[StoredKey]:
    """Find the keys that begin so: usually one, whose hash then decides."""
    return [StoredKey(**row._mapping) for row in await glance.rows(_KEYS_LIKE, prefix=prefix)]


_KEYS_LIKE = (
    select(
        WorkerApiKey.id.label("key_id"),
        WorkerApiKey.key_hash,
        WorkerApiKey.hash_version,
        WorkerApiKey.revoked_at.is_not(None).label("is_revoked"),
        func.coalesce(WorkerApiKey.expires_at <= func.now(), False).label("has_expired"),
        func.coalesce(WorkerApiKey.last_used_at <= used_before(), True).label("used_long_ago"),
        Worker.worker_id,
        Worker.worker_name,
        (Worker.status == WorkerStatus.DISABLED).label("is_disabled"),
        Worker.capabilities["slots"].label("slots"),
        Worker.status,
        Worker.current_job_id,
        Worker.pools_aside,
        func.coalesce(Worker.last_heartbeat > func.now() - LATELY, False).label("heard_lately"),
        func.now().label("seen_at"),
    )
    .join(Worker, Worker.id == WorkerApiKey.worker_id)
    .where(WorkerApiKey.key_prefix == bindparam("prefix"))
)


def _workers() -> Select[Worker, int]:
    return select(Worker, Job.video_id).outerjoin(Job, Job.id == Worker.current_job_id)


def _plain(row: Worker, video_id: int | None, speed: Speed) -> dict[str, Any]:
    other = ("standing", "current_video_id", "capabilities", "metadata", "speed", "last_speed")
    plain = {name: getattr(row, name) for name in WorkerView.model_fields if name not in other}
    return plain | {
        "standing": standing_of(row.status, row.revoked_at),
        "current_video_id": video_id,
        "capabilities": row.capabilities or {},
        "metadata": row.about or {},
        "speed": speed.now,
        "last_speed": speed.last,
    }


def _show_key(row: WorkerApiKey) -> WorkerKeyView:
    plain = {name: getattr(row, name) for name in WorkerKeyView.model_fields if name != "key_id"}
    return WorkerKeyView(key_id=row.id, **plain)


def _show_step(row: JobStep) -> WorkerStepView:
    plain = {name: getattr(row, name) for name in WorkerStepView.model_fields if name != "qualities"}
    return WorkerStepView(qualities=tuple(row.qualities), **plain)
