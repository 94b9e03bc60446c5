"""Jobs whose row may no longer be what Temporal says: which to look at, and the way back into the outbox."""

from dataclasses import dataclass

from sqlalchemy import func, or_, select

from contracts.states import EventLevel
from mirror.chores_workers import seconds
from mirror.events import Event, add_event
from mirror.locking import lock_job
from mirror.marks import move_on, place_of
from mirror.sessions import WriteSession
from mirror.states import has_ended
from mirror.tables import Job, unfinished

ROUND = "drift.round"
# A start takes moments to be known on both sides.
STARTED_FOR_S = 10.0


@dataclass(frozen=True)
class DoubtfulJob:
    job_id: int
    video_id: int
    workflow_id: str


async def doubtful_jobs(s: WriteSession, *, limit: int, started_for_s: float = STARTED_FOR_S) -> list[DoubtfulJob]:
    """List the next unfinished jobs that nobody holds: what somebody holds is surely being worked on.

    A round goes through all of them in batches, so that a thousand waiting jobs hide nobody.
    """
    unheld = or_(Job.claim_expires_at.is_(None), Job.claim_expires_at <= func.now())
    query = (
        select(Job.id, Job.video_id, Job.workflow_id)
        .where(unfinished(), unheld, Job.workflow_id.is_not(None), Job.id > await place_of(s, ROUND))
        .where(Job.workflow_started_at < func.now() - seconds(started_for_s))
        .order_by(Job.id)
        .limit(limit)
    )
    found = [DoubtfulJob(job, video, workflow or "") for job, video, workflow in (await s.execute(query)).all()]
    await move_on(s, ROUND, [job.job_id for job in found], limit)
    return found


async def put_back(s: WriteSession, job_id: int) -> bool:
    """Put a job whose workflow Temporal has forgotten back into the outbox; False when it has ended.

    From there it is started like any other, with what `mirror.reads.unstarted_jobs` says: its own plan, and later
    generations than those that are recorded. One that is paused waits there for its resume.
    """
    job = await lock_job(s, job_id)
    if job is None or has_ended(job):
        return False
    job.workflow_started_at = None
    await s.flush()
    told = "Temporal no longer knew of this job; it is started again and goes on where its segments end."
    await add_event(s, Event("job.restarted", job_id, told, repeats=True))
    return True


async def tell_stuck(s: WriteSession, job_id: int, attempt: int) -> None:
    """Say, once, that a workflow fails in our own code, and so does nothing."""
    job = await lock_job(s, job_id)
    if job is None or has_ended(job):
        return
    told = (
        f"Its workflow has failed {attempt - 1} times to say what comes next, and tries on. Temporal's page shows why; "
        "workers with code that fits it let it go on."
    )
    await add_event(s, Event("job.stuck", job_id, told, {"step": "workflow"}, EventLevel.ERROR, step_key="workflow"))
