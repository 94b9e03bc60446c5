"""The mirror in numbers, for those who watch it from outside."""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, func, select, text

from contracts.states import JobState, StepOutcome, VideoStatus, WorkerStatus
from mirror.counting import EventCount, event_counts, workers_counts
from mirror.reads import JOB_STATES
from mirror.sessions import AnySession
from mirror.tables import JobStep, Video, WebhookDelivery, Worker
from mirror.words import DeliveryStatus

PATIENCE_MS = 2000  # a question that takes longer is not worth its answer


@dataclass(frozen=True)
class Numbers:
    """A moment of the mirror."""

    videos: dict[VideoStatus, int]
    jobs: dict[JobState, int]
    workers: dict[WorkerStatus, int]
    deliveries: dict[DeliveryStatus, int]
    concurrent_jobs: int  # with a step that somebody holds
    running_steps: dict[str, int]  # by queue
    oldest_waiting_s: float
    heartbeats: int
    heartbeat_failures: int
    acquire_conflicts: int
    events: tuple[EventCount, ...]


async def numbers(s: AnySession) -> Numbers:
    await s.execute(text(f"SET LOCAL statement_timeout = {PATIENCE_MS}"))
    videos = select(Video.status, func.count()).where(Video.deleted_at.is_(None)).group_by(Video.status)
    jobs = select(JOB_STATES.c.state, func.count()).group_by(JOB_STATES.c.state)
    workers = select(Worker.status, func.count()).group_by(Worker.status)
    deliveries = select(WebhookDelivery.status, func.count()).group_by(WebhookDelivery.status)
    busy = select(func.count(JobStep.job_id.distinct())).where(*_held())
    waiting = text("""
        SELECT coalesce(extract(epoch FROM now() - min(j.created_at)), 0)::double precision
        FROM transcoding_jobs j JOIN job_states s ON s.job_id = j.id WHERE s.state = 'unclaimed'
    """)
    found = {name: {row[0]: row[1] for row in await s.execute(query)} for name, query in (
        ("videos", videos), ("jobs", jobs), ("workers", workers), ("deliveries", deliveries)
    )}  # fmt: skip
    own = await workers_counts(s)
    return Numbers(
        videos={status: found["videos"].get(status, 0) for status in VideoStatus},
        jobs={state: found["jobs"].get(state.value, 0) for state in JobState},
        workers={status: found["workers"].get(status, 0) for status in WorkerStatus},
        deliveries={status: found["deliveries"].get(status, 0) for status in DeliveryStatus},
        concurrent_jobs=(await s.execute(busy)).scalar_one(),
        running_steps=await running_steps(s),
        oldest_waiting_s=(await s.execute(waiting)).scalar_one(),
        heartbeats=own["heartbeats"],
        heartbeat_failures=own["heartbeat_failures"],
        acquire_conflicts=own["acquire_conflicts"],
        events=tuple(await event_counts(s)),
    )


async def running_steps(s: AnySession) -> dict[str, int]:
    """Count the steps that a worker holds now, by queue."""
    steps = select(JobStep.queue, func.count()).where(*_held()).group_by(JobStep.queue)
    return {str(queue): count for queue, count in (await s.execute(steps)).all()}


def _held() -> tuple[ColumnElement[bool], ...]:
    return (
        JobStep.finished_at.is_(None),
        JobStep.outcome == StepOutcome.RUNNING,
        JobStep.claim_expires_at > func.now(),
    )
