"""What people see of a job, its qualities and its video, drawn anew from all its steps; the job is locked meanwhile."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select, update

from contracts.plan import TranscodePlan
from contracts.states import QualityStatus, StepName, VideoStatus
from mirror.deriving import (
    NOTHING_DONE,
    Done,
    JobPicture,
    QualityPicture,
    counts,
    generations,
    latest_attempts,
    picture_job,
    picture_quality,
)
from mirror.events import Event
from mirror.playable import is_playable
from mirror.sessions import WriteSession
from mirror.step_events import playable_event, quality_event
from mirror.tables import Job, JobStep, QualityProgressRow, Video
from mirror.writes_publishing import published_by

WAITING = (VideoStatus.PENDING, VideoStatus.PROCESSING)


@dataclass(frozen=True)
class VideoNow:
    """A job's video, and the database's clock, once the job is locked: nobody but its holder changes these."""

    now: datetime
    status: VideoStatus
    playable_at: datetime | None


async def look_at_video(s: WriteSession, job: Job) -> VideoNow:
    """Look at both together: this is done for every percent of every step."""
    seen = select(func.clock_timestamp(), Video.status, Video.playable_at).where(Video.id == job.video_id)
    now, status, playable_at = (await s.execute(seen)).one()
    return VideoNow(now, status, playable_at)


async def redraw(
    s: WriteSession, job: Job, attempts: list[JobStep], video: VideoNow, done: Done = NOTHING_DONE
) -> list[Event]:
    """Derive the rows of a locked job, its qualities and its video from all its steps; `done` may be left out."""
    current = generations(job.plan)
    steps = latest_attempts([step for step in attempts if counts(step, current)])
    with s.no_autoflush:  # the job's own row is written once, with all that is new of it
        found = await s.execute(select(QualityProgressRow).where(QualityProgressRow.job_id == job.id))
    qualities = found.scalars().all()
    events: list[Event] = []
    for quality in qualities:
        events += _apply_quality(
            quality, picture_quality(quality, steps, done, current.get(quality.quality, 0)), video.now
        )
    picture = picture_job(job, steps, qualities, done)
    job.progress_percent = picture.percent
    job.attempt_number = picture.attempt_number
    job.last_error = picture.last_error
    job.current_step = picture.current_step or job.current_step
    await _apply_claim(s, job, picture, video)
    return events


async def announce_playable(
    s: WriteSession, job: Job, steps: list[JobStep], done: Done, row: JobStep, video: VideoNow
) -> list[Event]:
    """Say once, and for good, that people can begin to watch; from then on the video is public, as at its end."""
    if video.playable_at is not None or row.step not in (StepName.AUDIO, StepName.TRANSCODE) or not job.plan:
        return []
    if not is_playable(TranscodePlan.model_validate(job.plan), steps, done):
        return []
    first = await s.execute(
        update(Video)
        .where(Video.id == job.video_id, Video.playable_at.is_(None))
        .values(playable_at=video.now, published_at=published_by(video.now), updated_at=video.now)
        .returning(Video.id)
    )
    return [playable_event(job.id)] if first.first() is not None else []


def _apply_quality(quality: QualityProgressRow, picture: QualityPicture, now: datetime) -> list[Event]:
    if picture.status is quality.status and picture.status in (QualityStatus.COMPLETED, QualityStatus.SKIPPED):
        return []
    events = []
    if quality.started_at is None and picture.status is not QualityStatus.PENDING:
        quality.started_at = now
        events.append(quality_event("quality.started", quality.job_id, quality.quality))
    if picture.status is QualityStatus.COMPLETED:
        quality.completed_at = now
        events.append(quality_event("quality.completed", quality.job_id, quality.quality))
    quality.status = picture.status
    quality.segments_completed = picture.segments_completed
    quality.progress_percent = picture.percent
    quality.error_message = picture.error_message
    return events


async def _apply_claim(s: WriteSession, job: Job, picture: JobPicture, video: VideoNow) -> None:
    """Let the job be held by its longest-lasting step, or by nobody; the video's status goes with it."""
    if picture.held is not None:
        job.worker_id = picture.held.worker_id
        job.claimed_at = picture.held.started_at
        job.claim_expires_at = picture.held.claim_expires_at
    elif picture.awaits_verdict:
        return  # kept for audit if the job fails now; the next claim replaces it if it goes on
    else:
        job.worker_id = job.claimed_at = job.claim_expires_at = None
    await s.flush()
    status = VideoStatus.PENDING if picture.held is None else VideoStatus.PROCESSING
    # A ready video stays ready throughout a retranscode; a failed one is raised only by a person's retry.
    if video.status is status or video.status not in WAITING:
        return
    await s.execute(
        update(Video)
        .where(Video.id == job.video_id, Video.status.in_(WAITING))
        .values(status=status, updated_at=video.now)
    )
