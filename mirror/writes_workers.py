"""Workers come, beat and go. A disabled worker stays disabled, whatever it sends; a revoked one is not there."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import case, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.sql.elements import ColumnElement

from contracts.states import WorkerStanding, WorkerStatus
from mirror.claims import WorkerRegistration
from mirror.cleaning import clean, jsonable
from mirror.events import TOPIC_WORKERS, Event, add_event, notify
from mirror.sessions import WriteSession
from mirror.tables import Worker


@dataclass(frozen=True)
class Beaten:
    """How a worker stands after its beat."""

    standing: WorkerStanding
    status: WorkerStatus
    current_job_id: int | None
    at: datetime  # by the database's clock
    pools_aside: tuple[str, ...] = ()


def standing_of(status: WorkerStatus, revoked_at: datetime | None) -> WorkerStanding:
    if revoked_at is not None:
        return WorkerStanding.REVOKED
    return WorkerStanding.DISABLED if status is WorkerStatus.DISABLED else WorkerStanding.WELCOME


def unless_disabled(status: WorkerStatus) -> ColumnElement[Any]:
    """Write what a worker says of itself, but for one that people shut out: nobody counts on that one."""
    return case(
        (Worker.status == WorkerStatus.DISABLED, WorkerStatus.DISABLED.value),
        (Worker.revoked_at.is_not(None), WorkerStatus.OFFLINE.value),
        else_=status.value,
    )


async def register_worker(s: WriteSession, registration: WorkerRegistration) -> WorkerStanding:
    """Make a worker known, or known again after a restart under the same id, and tell it how it stands."""
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
    status, revoked_at = (await s.execute(put.returning(Worker.status, Worker.revoked_at))).one()
    name = about["worker_name"] or registration.worker_id
    fields = {"worker_type": registration.worker_type.value, "version": about["version"]}
    await add_event(s, Event("worker.registered", None, f"{name} came up.", fields, actor=registration.worker_id))
    await notify(s, TOPIC_WORKERS, registration.worker_id)
    return standing_of(status, revoked_at)


async def worker_heartbeat(s: WriteSession, worker_id: str, status: WorkerStatus, *, failed: int = 0) -> WorkerStanding:
    """Take a worker's sign of life and tell it how it stands; `failed` ones before it could not be written."""
    beaten = await take_beat(s, worker_id, status, {"heartbeat_failures": Worker.heartbeat_failures + failed})
    return beaten.standing if beaten is not None else WorkerStanding.UNKNOWN


async def take_beat(
    s: WriteSession, worker_id: str, status: WorkerStatus, changes: Mapping[str, Any] | None = None
) -> Beaten | None:
    """Take a worker's sign of life, and what changed about it; None when nobody has registered it."""
    word = await take_word(s, worker_id, status, {"heartbeats": Worker.heartbeats + 1, **(changes or {})})
    if word is None:
        return None
    await notify(s, TOPIC_WORKERS, worker_id)
    standing = standing_of(word.status, word.revoked_at)
    return Beaten(standing, word.status, word.current_job_id, word.at, word.pools_aside)


@dataclass(frozen=True)
class Word:
    """What a worker's word has made of its row."""

    changed: bool  # of what people see
    status: WorkerStatus
    revoked_at: datetime | None
    current_job_id: int | None
    at: datetime
    pools_aside: tuple[str, ...] = ()


async def take_word(s: WriteSession, worker_id: str, status: WorkerStatus, changes: Mapping[str, Any]) -> Word | None:
    """Hear from a worker, by a beat or by a step's news; one that was silent is back, and that is told.

    `active` says only that it lives: one that is known to be idle or busy stays so. The row is locked first, so
    that a word, the marking of silent workers and a person's command follow one another, in whatever order.
    """
    found = await s.execute(
        select(Worker.id, Worker.worker_name, Worker.status, Worker.current_job_id)
        .where(Worker.worker_id == worker_id)
        .with_for_update(key_share=True)
    )
    before = found.one_or_none()
    if before is None:
        return None
    said = status
    if status is WorkerStatus.ACTIVE:
        said = WorkerStatus.IDLE if before.status is WorkerStatus.OFFLINE else before.status
    after = await s.execute(
        update(Worker)
        .where(Worker.id == before.id)
        # Not now(): the transaction may have waited for the lock, and a word must not look older than it is.
        .values(last_heartbeat=func.clock_timestamp(), status=unless_disabled(said), **dict(changes))
        .returning(Worker.status, Worker.revoked_at, Worker.current_job_id, Worker.last_heartbeat, Worker.pools_aside)
        .execution_options(synchronize_session=False)
    )
    row = after.one()
    if before.status is WorkerStatus.OFFLINE and row.status is not WorkerStatus.OFFLINE:
        name = before.worker_name or worker_id
        await add_event(s, Event("worker.online", None, f"{name} is back.", {"worker_id": worker_id}, actor=worker_id))
    changed = (before.status, before.current_job_id) != (row.status, row.current_job_id)
    return Word(
        changed, row.status, row.revoked_at, row.current_job_id, row.last_heartbeat, tuple(row.pools_aside or ())
    )


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
