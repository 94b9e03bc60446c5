"""Workers that fell silent, and those that nobody will hear of again. A beat that comes meanwhile wins."""

from datetime import timedelta

from sqlalchemy import ColumnElement, Interval, and_, delete, exists, func, literal, not_, select, update

from contracts.states import WorkerStatus, WorkerType
from mirror.counting import count_before_forgetting
from mirror.events import TOPIC_WORKERS, Event, add_event, add_events, notify, notify_all
from mirror.marks import API_STARTED
from mirror.sessions import WriteSession
from mirror.tables import Mark, Worker, WorkerApiKey

# After an API start: workers that speak through it had nobody to speak to.
START_GRACE_S = 120.0
# Long enough that who comes back from a week's holiday sees which machine fell silent.
FORGOTTEN_S = 7 * 24 * 3600.0
AT_ONCE = 200


def seconds(number: float) -> ColumnElement[timedelta]:
    """Write a length of time for Postgres, whose clock is the one that all share."""
    return literal(timedelta(seconds=number), Interval)


async def mark_silent_workers_offline(
    s: WriteSession, *, silent_s: float, start_grace_s: float = START_GRACE_S
) -> list[str]:
    """Mark offline who has not been heard from for so long, and name them.

    One who never beat is judged by its registration; a disabled one stays disabled, and only lets go of its job. The
    condition is part of the UPDATE: Postgres looks at a row again after waiting for whoever changes it, so a beat that
    is being written saves its worker. Only the row of the worker changes here: claims end by their own clocks, and a
    worker that speaks again is idle or busy at once, by its own word.
    """
    just_started = exists().where(Mark.name == API_STARTED, Mark.at > func.now() - seconds(start_grace_s))
    is_silent = and_(
        func.coalesce(Worker.last_heartbeat, Worker.registered_at) < func.now() - seconds(silent_s), not_(just_started)
    )
    shut_out = Worker.status.in_([WorkerStatus.OFFLINE, WorkerStatus.DISABLED])
    await s.execute(
        update(Worker)
        .where(shut_out, Worker.current_job_id.is_not(None), is_silent)
        .values(current_job_id=None)
        .execution_options(synchronize_session=False)
    )
    marked = await s.execute(
        update(Worker)
        .where(not_(shut_out), is_silent)
        .values(status=WorkerStatus.OFFLINE, current_job_id=None)
        .returning(Worker.worker_id, Worker.worker_name)
        .execution_options(synchronize_session=False)
    )
    gone = marked.all()
    for worker_id, name in gone:
        await add_event(s, Event("worker.offline", None, f"{name or worker_id} fell silent.", actor=worker_id))
        await notify(s, TOPIC_WORKERS, worker_id)
    return [worker_id for worker_id, _ in gone]


async def forget_long_silent_workers(
    s: WriteSession, *, silent_s: float = FORGOTTEN_S, at_once: int = AT_ONCE
) -> list[str]:
    """Delete local workers that have been offline and silent for so long, and name them.

    Whoever loses its home is a new worker at each start, as pods are, and every one of them left a row that each page
    and `vlog workers` would show for ever. Only those that register themselves, which they do again should they come
    back; what a person has registered, disabled or revoked stays. Jobs and steps keep its name: they have it in words.
    A row that somebody is writing is skipped: its worker lives.
    """
    has_key = exists().where(WorkerApiKey.worker_id == Worker.id)
    found = await s.execute(
        select(Worker.id, Worker.worker_id, Worker.worker_name)
        .where(
            Worker.status == WorkerStatus.OFFLINE,
            Worker.worker_type == WorkerType.LOCAL,
            Worker.revoked_at.is_(None),
            not_(has_key),
            func.coalesce(Worker.last_heartbeat, Worker.registered_at) < func.now() - seconds(silent_s),
        )
        .order_by(Worker.id)
        .limit(at_once)
        .with_for_update(of=Worker, skip_locked=True)
    )
    gone = found.all()
    if not gone:
        return []
    ids = [row.worker_id for row in gone]
    await count_before_forgetting(s, ids)
    await s.execute(delete(Worker).where(Worker.id.in_([row.id for row in gone])))
    await add_events(s, [_forgotten(row.worker_id, row.worker_name) for row in gone])
    await notify_all(s, TOPIC_WORKERS, ids)
    return ids


def _forgotten(worker_id: str, name: str | None) -> Event:
    about = {"worker_id": worker_id, "worker_name": name}
    return Event("worker.deleted", None, f"{name or worker_id} was forgotten: nobody had heard of it for long.", about)
