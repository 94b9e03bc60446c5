"""The one lock of the mirror: a job's row, taken first by every write about that job.

Videos and workers are written after it, in that order, so that no two writers wait for each other.
"""

from datetime import datetime

from sqlalchemy import func, select

from mirror.sessions import WriteSession
from mirror.tables import Job


async def lock_job(s: WriteSession, job_id: int) -> Job | None:
    """Lock a job against other writers; rows that only point at it may still be added."""
    found = await s.execute(
        select(Job).where(Job.id == job_id).with_for_update(key_share=True).execution_options(populate_existing=True)
    )
    return found.scalar_one_or_none()


async def database_now(s: WriteSession) -> datetime:
    """Read the database's clock: the one clock that all workers share.

    Not now(): that is when the transaction began, and it may have waited for the lock since.
    """
    now: datetime = (await s.execute(select(func.clock_timestamp()))).scalar_one()
    return now
