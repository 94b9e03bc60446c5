"""Workers come, beat and go. A disabled worker stays disabled, whatever it sends."""

from typing import Any

from sqlalchemy import case, func, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.sql.elements import ColumnElement

from contracts.states import WorkerStanding, WorkerStatus
from mirror.claims import WorkerRegistration
from mirror.cleaning import clean, jsonable
from mirror.events import TOPIC_WORKERS, Event, add_event, notify
from mirror.sessions import WriteSession
from mirror.tables import Worker


def unless_disabled(status: WorkerStatus) -> ColumnElement[Any]:
    return case((Worker.status == WorkerStatus.DISABLED, WorkerStatus.DISABLED.value), else_=status.value)


def standing_of(status: WorkerStatus | None) -> WorkerStanding:
    """Say whether a worker whose row now shows this, or that has no row, may have work."""
    if status is None:
        return WorkerStanding.UNKNOWN
    return WorkerStanding.DISABLED if status is WorkerStatus.DISABLED else WorkerStanding.WELCOME


async def register_worker(s: WriteSession, registration: WorkerRegistration) -> WorkerStanding:
    """Make a worker known, or known again after a restart under the same id."""
    about = {
        "worker_name": clean(registration.worker_name)[:100] or None,
        "worker_type": registration.worker_type,
        "capabilities": jsonable(dict(registration.capabilities)),
        "metadata": jsonable(dict(registration.metadata)),
        "version": clean(registration.version)[:100] or None,
        "last_heartbeat": func.now(),
    }
    put = insert(Worker.__table__).values(  # type: ignore[arg-type]
        worker_id=registration.worker_id, status=registration.status, **about
    )
    again = {**about, "status": unless_disabled(registration.status), "current_job_id": None}
    put = put.on_conflict_do_update(index_elements=["worker_id"], set_=again)
    status = (await s.execute(put.returning(Worker.status))).scalar_one()
    name = about["worker_name"] or registration.worker_id
    fields = {"worker_type": registration.worker_type.value, "version": about["version"]}
    await add_event(s, Event("worker.registered", None, f"{name} came up.", fields, actor=registration.worker_id))
    await notify(s, TOPIC_WORKERS, registration.worker_id)
    return standing_of(status)


async def worker_heartbeat(s: WriteSession, worker_id: str, status: WorkerStatus) -> WorkerStanding:
    """Take a worker's sign of life, and say how it stands."""
    beat = await s.execute(
        update(Worker)
        .where(Worker.worker_id == worker_id)
        .values(last_heartbeat=func.now(), status=unless_disabled(status))
        .returning(Worker.status)
    )
    standing = standing_of(beat.scalar_one_or_none())
    if standing is not WorkerStanding.UNKNOWN:
        await notify(s, TOPIC_WORKERS, worker_id)
    return standing


async def worker_gone(s: WriteSession, worker_id: str) -> None:
    """Note that a worker left on purpose."""
    gone = await s.execute(
        update(Worker)
        .where(Worker.worker_id == worker_id)
        .values(status=unless_disabled(WorkerStatus.OFFLINE), current_job_id=None)
        .returning(Worker.worker_name)
    )
    for name in gone.scalars():
        await add_event(s, Event("worker.stopped", None, f"{name or worker_id} was stopped.", actor=worker_id))
    await notify(s, TOPIC_WORKERS, worker_id)
