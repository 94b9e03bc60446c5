"""A video comes in: its row, its first job and the first line of its story, in one transaction."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import or_, select, text
from sqlalchemy.dialects.postgresql import insert

from contracts.ids import JobId, ObjectKey, VideoId, workflow_id
from contracts.plan import TranscodePlan
from contracts.states import JobKind, Tier, VideoStatus
from contracts.steps import TranscodeRequest, Tried
from mirror.cleaning import clean
from mirror.events import TOPIC_PROGRESS, Event, add_event, notify
from mirror.locking import database_now, lock_job
from mirror.sessions import AnySession, WriteSession
from mirror.slugs import free_slug, slug_of
from mirror.tables import Job, Video
from mirror.words import Command

IsUsed = Callable[[str], Awaitable[bool]]


class VideoExists(ValueError):
    """A video has this number already: perhaps the very one, made by a request that was as far as ours."""


@dataclass(frozen=True)
class NewVideo:
    """A source that is already durable in storage under `source_key`."""

    video_id: VideoId
    title: str
    source_key: ObjectKey
    source_filename: str = ""
    source_size_bytes: int = 0
    description: str = ""
    owner: str = ""
    tier: Tier = Tier.FREE
    qualities: tuple[str, ...] = ()
    max_attempts: int = 3
    idempotency_key: str | None = None
    actor: str | None = None


@dataclass(frozen=True)
class CreatedVideo:
    video_id: VideoId
    job_id: JobId
    slug: str
    status: VideoStatus
    request: TranscodeRequest  # what to start the workflow with
    repeated: bool = False  # the idempotency key had been used: this is the first answer again


async def next_video_id(s: WriteSession) -> VideoId:
    """Reserve an id before the first byte arrives, so that the source has its final name from the start."""
    return VideoId((await s.execute(text("SELECT nextval('videos_id_seq')"))).scalar_one())


async def create_video(s: WriteSession, new: NewVideo, is_used: IsUsed | None = None) -> CreatedVideo:
    """Create a video and its job; with a known idempotency key, repeat the first answer.

    `is_used` tells of a slug whether something lies in storage under it: then it was a video's that this database has
    lost, and what a new one found there would count as its own.
    """
    slug = await _insert_video(s, new, is_used)
    if slug is None:
        repeated = await idempotent(s, new.idempotency_key or "")
        if repeated is None:
            raise VideoExists(f"Video {new.video_id} exists already.")
        return repeated
    job_id = await _insert_job(s, new)
    fields = {"filename": new.source_filename, "size_bytes": new.source_size_bytes, "tier": new.tier.value}
    await add_event(s, Event("job.created", job_id, f"“{new.title}” was uploaded.", fields, actor=new.actor))
    await notify(s, TOPIC_PROGRESS, new.video_id)
    request = TranscodeRequest(
        video_id=new.video_id,
        job_id=job_id,
        slug=slug,
        source_key=new.source_key,
        source_size_bytes=new.source_size_bytes,
        qualities=new.qualities,
        owner=new.owner,
        tier=new.tier,
        max_attempts=new.max_attempts,
    )
    return CreatedVideo(new.video_id, job_id, slug, VideoStatus.PENDING, request)


async def _insert_video(s: WriteSession, new: NewVideo, is_used: IsUsed | None) -> str | None:
    """Insert under the first free slug; None when this id or idempotency key is taken."""
    base = slug_of(new.title)
    row = {
        "id": new.video_id,
        "title": clean(new.title)[:255],
        "description": clean(new.description),
        "source_key": new.source_key,
        "source_filename": clean(new.source_filename),
        "source_size_bytes": new.source_size_bytes,
        "owner": clean(new.owner)[:255],
        "tier": new.tier,
        "idempotency_key": new.idempotency_key,
    }
    used: set[str] = set()
    while True:
        like = Video.slug.like(f"{base}-%")
        taken = set((await s.execute(select(Video.slug).where(or_(Video.slug == base, like)))).scalars())
        slug = free_slug(base, taken | used)
        if is_used is not None and await is_used(slug):
            used.add(slug)
            continue
        added = await s.execute(insert(Video).values(slug=slug, **row).on_conflict_do_nothing().returning(Video.id))
        if added.scalar_one_or_none() is not None:
            return slug
        # Somebody was faster. With the slug: look again and take the next. With the key or the id: it is there.
        mine = Video.id == new.video_id
        if new.idempotency_key is not None:
            mine = or_(mine, Video.idempotency_key == new.idempotency_key)
        if (await s.execute(select(Video.id).where(mine))).first() is not None:
            return None


async def _insert_job(s: WriteSession, new: NewVideo) -> JobId:
    job = Job(
        video_id=new.video_id,
        qualities=list(new.qualities),
        owner=clean(new.owner)[:255],
        tier=new.tier,
        max_attempts=new.max_attempts,
    )
    s.add(job)
    await s.flush()
    job.workflow_id = workflow_id(new.video_id, JobId(job.id))
    await s.flush()
    return JobId(job.id)


def request_of(
    video: Video,
    job: Job,
    continued: dict[str, Any] | None = None,
    *,
    first_generation: int = 0,
    tried: tuple[Tried, ...] = (),
) -> TranscodeRequest:
    """Rebuild the workflow's input from the rows: the same that was, or should have been, sent.

    `continued` is the plan of the job that this one continues. A first generation above 0 belongs to a job that
    Temporal has forgotten: it continues itself, if it had come to a plan, and goes on counting its tries.
    """
    resumes = first_generation > 0 and job.plan is not None
    before = job.plan if resumes else continued
    plan = TranscodePlan.model_validate(before) if before else None
    # What was asked for as a whole new stream stays all or nothing, however often it is tried again.
    whole = job.kind is JobKind.RETRY and job.retranscode_metadata is not None and plan is not None
    return TranscodeRequest(
        video_id=VideoId(video.id),
        job_id=JobId(job.id),
        slug=video.slug,
        source_key=ObjectKey(video.source_key),
        source_size_bytes=video.source_size_bytes or 0,
        output=job.output,
        qualities=tuple(job.qualities),
        owner=job.owner,
        tier=job.tier,
        max_attempts=job.max_attempts,
        kind=job.kind,
        plan=plan,
        first_generation=first_generation,
        resumes=resumes,
        tried=tried,
        keep=tuple(job.keep),
        critical=(*(rung.quality for rung in plan.renditions), "audio") if plan and whole else (),
    )


async def idempotent(s: AnySession, key: str) -> CreatedVideo | None:
    """Find the answer that an idempotency key got the first time."""
    found = await s.execute(
        select(Video, Job).join(Job, Job.video_id == Video.id).where(Video.idempotency_key == key).order_by(Job.id)
    )
    row = found.first()
    if row is None:
        return None
    video, job = row
    return CreatedVideo(
        VideoId(video.id), JobId(job.id), video.slug, VideoStatus.PENDING, request_of(video, job), repeated=True
    )


async def workflow_started(s: WriteSession, job_id: JobId) -> None:
    """Note that Temporal has the job; housekeeping starts those without this note.

    A command that came while it was being started has not been heard: it is put down as untold.
    """
    job = await lock_job(s, job_id)
    if job is None or job.workflow_started_at is not None:
        return
    now = await database_now(s)
    job.workflow_started_at = now
    unheard = [Command.CANCEL] if job.cancel_requested_at else [Command.PAUSE] if job.paused_at else []
    if unheard:
        job.untold = [*job.untold, *(each for each in unheard if each not in job.untold)]
        job.command_at = now
    await s.flush()
