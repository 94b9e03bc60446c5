"""Questions about workers."""

from sqlalchemy import func, select

from contracts.media import Capacity
from contracts.states import WorkerStatus
from mirror.sessions import AnySession
from mirror.tables import Worker


async def capacity(s: AnySession, *, heard_within_s: float) -> Capacity:
    """Count the workers that encode and were heard of lately, and their slots."""
    lately = func.now() - func.make_interval(0, 0, 0, 0, 0, 0, heard_within_s)
    slots = Worker.capabilities["slots"]["cpu"].as_integer()
    found = await s.scalars(
        select(slots)
        .where(
            Worker.status.not_in([WorkerStatus.OFFLINE, WorkerStatus.DISABLED]),
            Worker.last_heartbeat > lately,
            slots > 0,
        )
        .order_by(slots.desc())
    )
    each = tuple(found)
    return Capacity(workers=len(each), slots=sum(each), each=each)
