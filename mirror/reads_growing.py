"""What a stream that is still being encoded is written from."""

from sqlalchemy import select

from contracts.ids import JobId
from contracts.media import TranscodePlan
from contracts.message import Message
from contracts.states import VideoStatus
from mirror.sessions import AnySession
from mirror.tables import Job, Video, unfinished


class GrowingJob(Message):
    job_id: JobId
    output: str
    plan: TranscodePlan


async def growing_job(s: AnySession, slug: str) -> GrowingJob | None:
    """Find the unfinished job of a video, once it has a plan; there is one at most.

    A ready video has a whole stream: what a retranscode or a retry adds to it is shown when it is whole, not before.
    """
    if "\x00" in slug:
        return None
    query = (
        select(Job.id, Job.output, Job.plan)
        .join(Video, Video.id == Job.video_id)
        .where(Video.slug == slug, Video.deleted_at.is_(None), Video.status != VideoStatus.READY, unfinished())
    )
    row = (await s.execute(query)).first()
    if row is None or not row.plan:
        return None
    return GrowingJob(job_id=JobId(row.id), output=row.output, plan=TranscodePlan.model_validate(row.plan))
