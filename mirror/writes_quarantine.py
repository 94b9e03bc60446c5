"""A worker sets itself aside, and comes back: one column and one line of the audit log each."""

from collections.abc import Collection

from sqlalchemy import func, select, update

from contracts.states import EventLevel
from mirror.events import TOPIC_WORKERS, Event, add_event, notify
from mirror.sessions import AnySession, WriteSession
from mirror.tables import Worker


async def is_quarantined(s: AnySession, worker_id: str) -> bool:
    found = await s.execute(select(Worker.quarantined_at).where(Worker.worker_id == worker_id))
    return found.scalar_one_or_none() is not None


async def quarantine_worker(s: WriteSession, worker_id: str, why: str, pools: Collection[str]) -> None:
    """Note that a worker takes no more work of these pools; told again it is no news."""
    done = await s.execute(
        update(Worker)
        .where(Worker.worker_id == worker_id, Worker.quarantined_at.is_(None))
        .values(quarantined_at=func.now())
        .returning(Worker.worker_name)
    )
    for name in done.scalars():
        message = f"{name or worker_id} set itself aside: {why}"
        fields = {"worker_id": worker_id, "pools": sorted(pools)}
        event = Event("worker.quarantined", None, message, fields, EventLevel.WARNING, actor=worker_id)
        await add_event(s, event)
        await notify(s, TOPIC_WORKERS, worker_id)


async def release_worker(s: WriteSession, worker_id: str) -> None:
    """Note that a worker passed its test and takes work again."""
    done = await s.execute(
        update(Worker)
        .where(Worker.worker_id == worker_id, Worker.quarantined_at.is_not(None))
        .values(quarantined_at=None)
        .returning(Worker.worker_name)
    )
    for name in done.scalars():
        message = f"{name or worker_id} passed its test and is back."
        await add_event(s, Event("worker.released", None, message, {"worker_id": worker_id}, actor=worker_id))
        await notify(s, TOPIC_WORKERS, worker_id)
