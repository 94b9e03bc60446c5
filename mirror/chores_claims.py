"""Claims that ran out: which they are, and how they are released. Temporal is asked in between, by the chore."""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import func, select

from contracts.states import StepOutcome
from mirror.chores_workers import seconds
from mirror.events import TOPIC_PROGRESS, add_events, notify
from mirror.locking import lock_job
from mirror.redrawing import look_at_video, redraw
from mirror.sessions import AnySession, WriteSession
from mirror.states import has_ended
from mirror.step_events import stale_event
from mirror.tables import Job, JobStep, unfinished

# A recorder that could not write for a moment comes back within this; nobody is hurried for less.
EXPIRED_FOR_S = 5.0

Fence = tuple[str, int, int]  # step key, generation, attempt


@dataclass(frozen=True)
class ExpiredClaims:
    """The steps of one job that read as running although nobody has beaten for them in time."""

    job_id: int
    workflow_id: str
    fences: tuple[Fence, ...]


async def expired_claims(s: AnySession, *, limit: int, older_than_s: float = EXPIRED_FOR_S) -> list[ExpiredClaims]:
    """List jobs with claims that ran out, the longest first."""
    oldest = func.min(JobStep.claim_expires_at)
    jobs = (
        select(Job.id, Job.workflow_id)
        .join(JobStep, JobStep.job_id == Job.id)
        .where(JobStep.finished_at.is_(None), JobStep.claim_expires_at < func.now() - seconds(older_than_s))
        .where(unfinished(), Job.workflow_id.is_not(None))
        .group_by(Job.id)
        .order_by(oldest)
        .limit(limit)
    )
    found = []
    for job_id, workflow in (await s.execute(jobs)).all():
        steps = select(JobStep.step_key, JobStep.generation, JobStep.attempt).where(
            JobStep.job_id == job_id,
            JobStep.finished_at.is_(None),
            JobStep.claim_expires_at < func.now() - seconds(older_than_s),
        )
        fences = tuple((key, generation, attempt) for key, generation, attempt in (await s.execute(steps)).all())
        found.append(ExpiredClaims(job_id, workflow or "", fences))
    return found


async def release_claims(s: WriteSession, job_id: int, lost: Collection[Fence]) -> int:
    """Mark attempts lost, tell `requeued:stale`, and draw the job anew; give how many there were.

    Looked at again under the job's lock: an attempt that beat or ended meanwhile is left alone. A worker that comes
    back later takes its row back, unless a newer attempt exists or the job has ended (mirror/writes_steps.py).
    """
    job = await lock_job(s, job_id)
    if job is None or has_ended(job):
        return 0
    video = await look_at_video(s, job)
    attempts = list((await s.execute(select(JobStep).where(JobStep.job_id == job_id))).scalars())
    released = [
        step
        for step in attempts
        if (step.step_key, step.generation, step.attempt) in lost
        and step.outcome is StepOutcome.RUNNING
        and step.claim_expires_at <= video.now
    ]
    for step in released:
        step.outcome, step.finished_at = StepOutcome.LOST, video.now
    if released:
        events = await redraw(s, job, attempts, video)
        await s.flush()
        await add_events(s, [*map(stale_event, released), *events])
        await notify(s, TOPIC_PROGRESS, job.video_id)
    return len(released)
