"""Uploads that come in pieces (tus): how much of each is here, until when it is kept, which video it became.

The offset moves only from what it is known to be, so of two who count only one goes on.
"""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete as delete_from
from sqlalchemy import func, select, update
from sqlalchemy.dialects.postgresql import insert

from contracts.ids import ObjectKey, VideoId
from contracts.states import Tier
from mirror.chores_workers import seconds
from mirror.cleaning import clean
from mirror.sessions import AnySession, WriteSession
from mirror.tables import Upload


class UploadGone(Exception):
    """It was dropped, or its time was over, before it became a video."""


@dataclass(frozen=True)
class NewUpload:
    id: str
    key: ObjectKey  # where its bytes will be when they are whole; it holds the video's number
    size_bytes: int
    metadata: str  # as it was sent
    filename: str
    title: str
    description: str
    owner: str
    tier: Tier
    qualities: tuple[str, ...]


@dataclass(frozen=True)
class UploadView(NewUpload):
    offset_bytes: int
    expires_at: datetime
    expired: bool
    video_id: int | None  # once it is whole

    @property
    def is_whole(self) -> bool:
        return self.offset_bytes == self.size_bytes


async def begin_upload(s: WriteSession, new: NewUpload, *, keep_s: float) -> bool:
    """Begin one; False where there is one of this id, which then stays as it is."""
    added = await s.execute(
        insert(Upload)
        .values(
            id=new.id,
            key=new.key,
            filename=clean(new.filename),
            title=clean(new.title),
            owner=clean(new.owner),
            tier=new.tier,
            details={
                "description": clean(new.description),
                "qualities": list(new.qualities),
                "metadata": clean(new.metadata),
            },
            size_bytes=new.size_bytes,
            expires_at=func.now() + seconds(keep_s),
        )
        .on_conflict_do_nothing()
        .returning(Upload.id)
    )
    return added.scalar_one_or_none() is not None


async def upload(s: AnySession, upload_id: str) -> UploadView | None:
    expired = (Upload.expires_at <= func.now()).label("expired")
    found = (await s.execute(select(Upload, expired).where(Upload.id == upload_id))).first()
    if found is None:
        return None
    row: Upload = found[0]
    assert row.size_bytes is not None and row.expires_at is not None  # `begin_upload` wrote both
    return UploadView(
        id=row.id,
        key=ObjectKey(row.key),
        size_bytes=row.size_bytes,
        metadata=row.details.get("metadata", ""),
        filename=row.filename,
        title=row.title,
        description=row.details.get("description", ""),
        owner=row.owner,
        tier=row.tier,
        qualities=tuple(row.details.get("qualities", ())),
        offset_bytes=row.offset_bytes,
        expires_at=row.expires_at,
        expired=found.expired,
        video_id=row.video_id,
    )


async def move_offset(s: WriteSession, upload_id: str, *, before: int, now: int, keep_s: float) -> datetime:
    """Count bytes that are durable, and give them time again; UploadGone when they are nobody's any more."""
    moved = await s.execute(
        update(Upload)
        .where(Upload.id == upload_id, Upload.offset_bytes == before, Upload.finished_at.is_(None))
        .values(offset_bytes=now, updated_at=func.now(), expires_at=func.now() + seconds(keep_s))
        .returning(Upload.expires_at)
        .execution_options(synchronize_session=False)
    )
    expires_at: datetime | None = moved.scalar_one_or_none()
    if expires_at is None:
        raise UploadGone
    return expires_at


async def finish_upload(s: WriteSession, upload_id: str, video_id: VideoId, *, keep_s: float) -> None:
    """Note which video it became, in the transaction that makes it one. The note outlives it for a while."""
    noted = await s.execute(
        update(Upload)
        .where(Upload.id == upload_id, Upload.finished_at.is_(None))
        .values(
            video_id=video_id,
            finished_at=func.now(),
            offset_bytes=Upload.size_bytes,
            updated_at=func.now(),
            expires_at=func.now() + seconds(keep_s),
        )
        .returning(Upload.id)
        .execution_options(synchronize_session=False)
    )
    if noted.scalar_one_or_none() is None:
        raise UploadGone


async def drop_upload(s: WriteSession, upload_id: str) -> None:
    await s.execute(delete_from(Upload).where(Upload.id == upload_id))


async def drop_lost(s: WriteSession, upload_id: str, *, at: int) -> bool:
    """Drop one whose bytes were looked for in vain; False when somebody has gone on with it since."""
    lost = Upload.id == upload_id, Upload.offset_bytes == at, Upload.finished_at.is_(None)
    dropped = await s.execute(
        delete_from(Upload).where(*lost).returning(Upload.id).execution_options(synchronize_session=False)
    )
    return dropped.scalar_one_or_none() is not None


async def keys_under_way(s: AnySession) -> list[str]:
    """Name the keys of uploads that have not become a video: their bytes may lie there for a moment without one."""
    return list((await s.execute(select(Upload.key).where(Upload.finished_at.is_(None)))).scalars())
