"""Workers that fell silent. One conditional UPDATE decides and writes, so a beat that comes meanwhile wins."""

from datetime import timedelta

from sqlalchemy import ColumnElement, Interval, and_, exists, func, literal, not_, update

from contracts.states import WorkerStatus
from mirror.events import TOPIC_WORKERS, Event, add_event, notify
from mirror.marks import API_STARTED
from mirror.sessions import WriteSession
from mirror.tables import Mark, Worker

# After an API start: workers that speak through it had nobody to speak to.
START_GRACE_S = 120.0


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
