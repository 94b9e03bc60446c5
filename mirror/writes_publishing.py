"""Publish and unpublish a video: who may see it besides those who are signed in.

A video is published by itself when it can be played, unless somebody has unpublished it; that may come before.
"""

from datetime import datetime

from sqlalchemy import ColumnElement, case, func, update

from contracts.ids import VideoId
from mirror.events import TOPIC_PROGRESS, Event, add_event, notify
from mirror.locking import database_now
from mirror.sessions import WriteSession
from mirror.tables import Video


def published_by(now: datetime) -> ColumnElement[datetime | None]:
    """Publish what can be played now, but for what somebody has taken off the site."""
    return case((Video.unpublished_at.is_(None), func.coalesce(Video.published_at, now)), else_=Video.published_at)


async def publish_video(s: WriteSession, video_id: VideoId, actor: str | None) -> None:
    """Let everybody see a video; one that is published keeps its date."""
    now = await database_now(s)
    published = await s.execute(
        update(Video)
        .where(Video.id == video_id, Video.published_at.is_(None), Video.deleted_at.is_(None))
        .values(published_at=now, unpublished_at=None, updated_at=now)
        .returning(Video.slug)
    )
    await _tell(s, "video.published", "was published", published.scalar_one_or_none(), video_id, actor)


async def unpublish_video(s: WriteSession, video_id: VideoId, actor: str | None) -> None:
    """Take a video off the site until somebody publishes it."""
    now = await database_now(s)
    hidden = await s.execute(
        update(Video)
        .where(Video.id == video_id, Video.unpublished_at.is_(None), Video.deleted_at.is_(None))
        .values(published_at=None, unpublished_at=now, updated_at=now)
        .returning(Video.slug)
    )
    await _tell(s, "video.unpublished", "was unpublished", hidden.scalar_one_or_none(), video_id, actor)


async def _tell(s: WriteSession, event: str, did: str, slug: str | None, video_id: int, actor: str | None) -> None:
    if slug is None:  # it was so before
        return
    await add_event(s, Event(event, None, f"“{slug}” {did}.", {"video_id": video_id, "slug": slug}, actor=actor))
    await notify(s, TOPIC_PROGRESS, video_id)
