"""Which stored bytes somebody still needs: told by rows, asked for one video at a time and under its lock.

A locked video gets no new job meanwhile: a job's row points at its video's, and waits for this lock.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import delete, func, or_, select, update

from contracts.layout import source_video
from contracts.states import VideoStatus
from mirror.chores_workers import seconds
from mirror.counting import count_before_purge
from mirror.events import Event, add_event
from mirror.locking import database_now
from mirror.marks import move_on, place_of
from mirror.numbers import given_here
from mirror.sessions import AnySession, WriteSession
from mirror.states import has_ended
from mirror.tables import AudioRenditionRow, Job, SubtitleRenditionRow, Upload, Video, VideoQuality, unfinished
from mirror.uploads import keys_under_way

OUTPUTS_ROUND = "outputs.round"


@dataclass(frozen=True)
class NeededOutputs:
    """What of a video's folder must stay: folders that a rendition's row names, and outputs that a job may use."""

    video_id: int
    slug: str
    prefixes: frozenset[str]
    outputs: frozenset[str]
    newest: int  # the highest number of an output that any job of it ever had

    def knows(self, output: str) -> bool:
        """Tell an output of a job that has a row. Where rows were lost, another may be the one that is served."""
        number = output.removeprefix("r")
        return number.isdecimal() and int(number) <= self.newest


async def videos_to_look_at(s: WriteSession, *, grace_s: float, limit: int) -> list[int]:
    """List the next videos of a round through all, and those whose grace has just run out."""
    place = await place_of(s, OUTPUTS_ROUND)
    going_round = select(Video.id).where(Video.id > place, Video.purged_at.is_(None)).order_by(Video.id).limit(limit)
    found = list((await s.execute(going_round)).scalars())
    await move_on(s, OUTPUTS_ROUND, found, limit)
    over = func.now() - seconds(grace_s)
    just_over = (
        select(Job.video_id)
        .where(Job.completed_at.between(over - seconds(600), over), Job.output != "r1")
        .order_by(Job.completed_at.desc())
        .limit(limit)
    )
    return list(dict.fromkeys([*(await s.execute(just_over)).scalars(), *found]))


async def needed_outputs(s: WriteSession, video_id: int, *, grace_s: float) -> NeededOutputs | None:
    """Lock a video and say what of its folder must stay; None when that cannot be said now.

    All of it stays while a job is unfinished, and for the grace after one has ended: people may still be playing
    what it replaced. The newest job's output stays for good, since a retry inherits it; unless it was cancelled, which
    promises to remove what it made, and storage or Postgres may have been away just then.
    """
    video = (await s.execute(select(Video).where(Video.id == video_id).with_for_update())).scalar_one_or_none()
    if video is None or video.purged_at is not None:
        return None
    jobs = (await s.execute(select(Job).where(Job.video_id == video_id).order_by(Job.id))).scalars().all()
    if not jobs or not all(has_ended(job) for job in jobs):
        return None
    ends = [end for job in jobs if (end := job.completed_at or job.cancelled_at or job.last_checkpoint)]
    if ends and await database_now(s) - max(ends) < timedelta(seconds=grace_s):
        return None
    rows: list[str] = []
    for table in (VideoQuality, AudioRenditionRow, SubtitleRenditionRow):
        rows += (await s.execute(select(table.prefix).where(table.video_id == video_id))).scalars()
    if not rows and video.status is VideoStatus.READY:
        return None  # rows were lost: something is served, and nobody can say what
    newest = max(int(job.output.removeprefix("r")) for job in jobs)
    inherited = frozenset({jobs[-1].output}) if jobs[-1].cancelled_at is None else frozenset[str]()
    return NeededOutputs(video_id, video.slug, frozenset(rows), inherited, newest)


async def to_purge(s: AnySession, *, retention_s: float, limit: int) -> list[int]:
    """List videos that were deleted long ago, and then those whose purge was cut short: it may be so once more."""
    query = (
        select(Video.id)
        .where(Video.deleted_at < func.now() - seconds(retention_s))
        .where(or_(Video.purged_at.is_(None), Video.source_key != ""))
        .order_by(Video.purged_at.nulls_first(), Video.deleted_at)
        .limit(limit)
    )
    return list((await s.execute(query)).scalars())


async def begin_purge(s: WriteSession, video_id: int, *, retention_s: float) -> tuple[str, str] | None:
    """Decide, under its lock, that a video is gone for good; give its slug and source. From here on no restore fits.

    None when it was restored meanwhile, or when a job of it has not ended: a cancel is on its way.
    """
    video = (await s.execute(select(Video).where(Video.id == video_id).with_for_update())).scalar_one_or_none()
    if video is None or video.deleted_at is None:
        return None
    open_jobs = select(Job.id).where(Job.video_id == video_id, unfinished()).limit(1)
    if (await s.execute(open_jobs)).first() is not None:
        return None
    still = await s.execute(
        update(Video)
        .where(Video.id == video_id, Video.deleted_at < func.now() - seconds(retention_s))
        .values(purged_at=func.now())  # anew at every try: one that fails makes room for the others
        .returning(Video.slug, Video.source_key)
        .execution_options(synchronize_session=False)
    )
    found = still.one_or_none()
    return (found.slug, found.source_key) if found else None


async def end_purge(s: WriteSession, video_id: int) -> None:
    """Forget everything of a video whose bytes are gone, but its slug: that is never given again."""
    await count_before_purge(s, video_id)
    for table in (VideoQuality, AudioRenditionRow, SubtitleRenditionRow, Job):
        await s.execute(delete(table).where(table.video_id == video_id))
    cleared = await s.execute(
        update(Video)
        .where(Video.id == video_id, Video.purged_at.is_not(None))
        .values(
            title="",
            description="",
            source_key="",
            source_filename="",
            source_facts=None,
            error_message=None,
            idempotency_key=None,
        )
        .returning(Video.slug)
        .execution_options(synchronize_session=False)
    )
    slug = cleared.scalar_one_or_none()
    if slug is not None:
        fields = {"video_id": video_id, "slug": slug}
        await add_event(s, Event("video.purged", None, f"“{slug}” was deleted for good.", fields))


async def unknown_videos(s: AnySession, numbers: Sequence[int]) -> set[int]:
    """Choose the numbers that were given out here and that neither a video nor an upload under way has.

    After a restore, or beside an empty database, the sources in storage may be all that is left of their videos.
    """
    known = await s.execute(select(Video.id).where(Video.id.in_(numbers)))
    given = await given_here(s)
    coming = {source_video(key) for key in await keys_under_way(s)}
    return {number for number in numbers if number in given} - set(known.scalars()) - coming


async def ended_jobs(s: AnySession, numbers: Sequence[int]) -> set[int]:
    """Choose the numbers of jobs that have ended or are gone."""
    running = await s.execute(select(Job.id).where(Job.id.in_(numbers), unfinished()))
    return set(numbers) - set(running.scalars())


async def expired_uploads(s: AnySession, *, limit: int) -> Sequence[str]:
    """List uploads whose time is over, those first for which it was over first."""
    query = select(Upload.id).where(Upload.expires_at < func.now()).order_by(Upload.expires_at).limit(limit)
    return list((await s.execute(query)).scalars())


async def forget_expired_upload(s: WriteSession, upload_id: str) -> str | None:
    """Drop an upload whose time is over; give the key of its bytes if they became no video.

    One statement: an upload that finishes meanwhile is either dropped before, and then fails, or no longer fits.
    """
    over = select(Upload.id).where(Upload.id == upload_id, Upload.expires_at < func.now())
    dropped = await s.execute(
        delete(Upload)
        .where(Upload.id.in_(over.with_for_update(skip_locked=True)))
        .returning(Upload.key, Upload.video_id, Upload.finished_at)
    )
    found = dropped.one_or_none()
    return found.key if found and found.video_id is None and found.finished_at is None else None
