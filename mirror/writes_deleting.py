"""Delete and restore a video. Both are a mark on its row: housekeeping purges what was deleted long ago."""

from sqlalchemy import select, update

from contracts.ids import JobId, VideoId
from contracts.states import EventLevel
from mirror.commands import Wish
from mirror.events import TOPIC_PROGRESS, Event, add_event, notify
from mirror.locking import database_now
from mirror.sessions import WriteSession
from mirror.tables import Job, Video, unfinished
from mirror.writes_commands import cancel_job


async def delete_video(s: WriteSession, video_id: VideoId, actor: str | None) -> Wish | None:
    """Mark a video deleted and wish its job cancelled, together; twice is once. Its slug stays its own.

    Gives what Temporal is to be told, if anything runs.
    """
    # The job first, as every writer does.
    job_id = (await s.execute(select(Job.id).where(Job.video_id == video_id, unfinished()))).scalar_one_or_none()
    wish = await cancel_job(s, JobId(job_id), actor) if job_id is not None else None
    await s.flush()
    now = await database_now(s)
    marked = await s.execute(
        update(Video)
        .where(Video.id == video_id, Video.deleted_at.is_(None))
        .values(deleted_at=now, updated_at=now)
        .returning(Video.slug)
    )
    slug = marked.scalar_one_or_none()
    if slug is not None:
        fields = {"video_id": video_id, "slug": slug}
        await add_event(
            s, Event("video.deleted", None, f"“{slug}” was deleted.", fields, EventLevel.WARNING, actor=actor)
        )
        await notify(s, TOPIC_PROGRESS, video_id)
    return wish


async def restore_video(s: WriteSession, video_id: VideoId, actor: str | None) -> None:
    """Take the mark away; what it had is served again at once. A job that the deletion cancelled stays cancelled."""
    now = await database_now(s)
    restored = await s.execute(
        update(Video)
        .where(Video.id == video_id, Video.deleted_at.is_not(None), Video.purged_at.is_(None))
        .values(deleted_at=None, updated_at=now)
        .returning(Video.slug)
    )
    slug = restored.scalar_one_or_none()
    if slug is not None:
        fields = {"video_id": video_id, "slug": slug}
        await add_event(s, Event("video.restored", None, f"“{slug}” was restored.", fields, actor=actor))
        await notify(s, TOPIC_PROGRESS, video_id)
