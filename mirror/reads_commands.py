"""Wishes that Temporal has not heard yet."""

from sqlalchemy import func, or_, select

from contracts.ids import JobId, VideoId
from mirror.commands import Wish, wish_of
from mirror.sessions import AnySession
from mirror.states import has_ended
from mirror.tables import Job


async def wish(s: AnySession, job_id: JobId) -> Wish | None:
    """Read what people want of a job."""
    job = (await s.execute(select(Job).where(Job.id == job_id))).scalar_one_or_none()
    return wish_of(job, ended=has_ended(job)) if job else None


async def untold_wishes(s: AnySession, limit: int) -> list[Wish]:
    """List wishes to tell. A job that was never started has nobody to tell, unless to cancel it.

    In any order: those that nobody can hear, since their workflow fails, must not hold up the others.
    """
    query = (
        select(Job)
        .where(Job.command_at.is_not(None))
        .where(or_(Job.workflow_started_at.is_not(None), Job.cancel_requested_at.is_not(None)))
        .order_by(func.random())
        .limit(limit)
    )
    return [wish_of(job, ended=has_ended(job)) for job in (await s.execute(query)).scalars()]


async def last_job(s: AnySession, video_id: VideoId) -> JobId | None:
    """Find the newest job of a video."""
    query = select(Job.id).where(Job.video_id == video_id).order_by(Job.id.desc()).limit(1)
    found = (await s.execute(query)).scalar_one_or_none()
    return JobId(found) if found is not None else None
