"""A worker sets pools of its own aside, and takes them up again: two columns, and a line of the audit log each time."""

from collections.abc import Collection

from sqlalchemy import func, select, update

from contracts.states import EventLevel
from mirror.events import TOPIC_WORKERS, Event, add_event, notify
from mirror.sessions import AnySession, WriteSession
from mirror.tables import Worker


async def pools_aside(s: AnySession, worker_id: str) -> frozenset[str]:
    """Name the pools that a worker was last known to be unfit for."""
    found = await s.execute(select(Worker.pools_aside).where(Worker.worker_id == worker_id))
    return frozenset(found.scalar_one_or_none() or ())


async def set_pools_aside(s: WriteSession, worker_id: str, pools: Collection[str], why: str) -> None:
    """Note which pools a worker is unfit for from now on, all of them; told again it is no news."""
    found = await s.execute(
        select(Worker.worker_name, Worker.pools_aside)
        .where(Worker.worker_id == worker_id)
        .with_for_update(key_share=True)
    )
    row = found.one_or_none()
    now, before = set(pools), set(row.pools_aside) if row else set()
    if row is None or now == before:
        return
    await s.execute(
        update(Worker)
        .where(Worker.worker_id == worker_id)
        .values(
            pools_aside=sorted(now),
            quarantined_at=func.coalesce(Worker.quarantined_at, func.now()) if now else None,
        )
        .execution_options(synchronize_session=False)
    )
    who = row.worker_name or worker_id
    if new := sorted(now - before):
        message, fields = f"{who} set itself aside: {why}", {"worker_id": worker_id, "pools": new}
        event = Event("worker.quarantined", None, message, fields, EventLevel.WARNING, actor=worker_id)
        await add_event(s, event)
    if back := sorted(before - now):
        message, fields = f"{who} is set aside no longer.", {"worker_id": worker_id, "pools": back}
        await add_event(s, Event("worker.released", None, message, fields, actor=worker_id))
    await notify(s, TOPIC_WORKERS, worker_id)
