"""A video once more: what is missing of it (retry), or all or some of it anew (retranscode). Each is a new job.

A video has one unfinished job at most: of two commands at once, the second finds the first one's job.
"""

import re
from dataclasses import dataclass

from sqlalchemy import exists, select

from contracts.ids import JobId, VideoId, workflow_id
from contracts.layout import video_prefix
from contracts.states import JobKind, Tier, VideoStatus
from contracts.steps import TranscodeRequest
from mirror.commands import Refused
from mirror.events import TOPIC_PROGRESS, Event, add_event, notify
from mirror.sessions import WriteSession
from mirror.states import has_ended
from mirror.tables import AudioRenditionRow, Job, Video, VideoQuality
from mirror.writes_intake import request_of

_SOUND = "audio_"  # how a request names a sound track


@dataclass(frozen=True)
class Again:
    """Who asks, and for what."""

    actor: str | None = None
    max_attempts: int = 3
    tier: Tier | None = None  # None: as the video before it
    qualities: tuple[str, ...] = ()  # of a retranscode; empty: all
    delete_transcription: bool = False
    keep_completed: bool = True  # VLOG_KEEP_COMPLETED_QUALITIES


@dataclass(frozen=True)
class NewJob:
    video_id: VideoId
    job_id: JobId
    slug: str
    title: str
    status: VideoStatus
    request: TranscodeRequest  # what to start the workflow with


async def retry_video(s: WriteSession, video_id: VideoId, ask: Again) -> NewJob | None:
    """Make what is missing: the rest of a job that ended badly, or the renditions that a ready video lacks.

    The new job has the output and the plan of the one it continues, so that every whole segment is found again.
    """
    video = await _lock_video(s, video_id)
    if video is None:
        return None
    last = await _last_job(s, video)
    job = Job(kind=JobKind.RETRY, output=last.output, continues_job_id=last.id, tier=ask.tier or last.tier)
    if last.completed_at is None:
        job.qualities, job.keep = list(last.qualities), await _still_there(s, video, last.keep)
        job.retranscode_metadata = last.retranscode_metadata
        if last.plan is None or not ask.keep_completed:  # nothing was made yet, or nothing of it is wanted
            job.kind, job.continues_job_id = last.kind, last.continues_job_id
        if not ask.keep_completed:
            job.output = await _next_output(s, video)
            # In a new folder nothing is there to be continued; the grid of what is kept still holds.
            again = last.keep or last.retranscode_metadata
            job.kind = JobKind.RETRANSCODE if again else JobKind.UPLOAD
    else:
        missing = [entry["name"] for entry in video.missing]
        if not missing:
            raise Refused("NOTHING_TO_RETRY", "Nothing of this video is missing.")
        job.qualities = [name for name in missing if not name.startswith(_SOUND)]
        job.keep = [name for name in await _published(s, video) if name not in missing]
    new = await _add_job(s, video, job, ask)
    what = ", ".join(job.qualities) or "what is missing"
    event = Event("job.retried", last.id, f"Job {new.job_id} makes {what}.", {"job_id": new.job_id}, actor=ask.actor)
    await add_event(s, event)
    return new


async def retranscode_video(s: WriteSession, video_id: VideoId, ask: Again) -> NewJob | None:
    """Make a stream anew, or some qualities of it, in a folder of their own; what is served stays until then."""
    video = await _lock_video(s, video_id)
    if video is None:
        return None
    last = await _last_job(s, video)
    published = await _published(s, video)
    pictures = [name for name in published if not name.startswith(_SOUND)]
    _refuse_too_large(video, ask.qualities)
    others = [name for name in pictures if name not in ask.qualities] if ask.qualities else []
    replaced = [name for name in pictures if name not in others]
    job = Job(
        kind=JobKind.RETRANSCODE,
        output=await _next_output(s, video),
        qualities=list(ask.qualities),
        tier=ask.tier or video.tier,
        retranscode_metadata={
            "retranscode_all": not others,
            "qualities_to_delete": replaced,
            "delete_transcription": ask.delete_transcription,
            "video_dir": video_prefix(video.slug),
        },
    )
    if others:
        # The others stay, with the sound and the frame grid they have: the new ones must fit to them.
        job.keep = [name for name in published if name not in replaced]
        job.continues_job_id = await _planner_of(s, video, last)
    new = await _add_job(s, video, job, ask)
    what = ", ".join(ask.qualities) or "every quality"
    fields = {"qualities": list(ask.qualities), "output": job.output, "replaces": replaced}
    await add_event(s, Event("job.retranscode", new.job_id, f"{what} will be made anew.", fields, actor=ask.actor))
    return new


async def _lock_video(s: WriteSession, video_id: VideoId) -> Video | None:
    """Lock a video that is there; writers of jobs take their job first, and none of them is waited for here."""
    query = select(Video).where(Video.id == video_id, Video.deleted_at.is_(None)).with_for_update(key_share=True)
    return (await s.execute(query.execution_options(populate_existing=True))).scalar_one_or_none()


async def _last_job(s: WriteSession, video: Video) -> Job:
    """Find the newest job, if it has ended."""
    query = select(Job).where(Job.video_id == video.id).order_by(Job.id.desc()).limit(1)
    last = (await s.execute(query.execution_options(populate_existing=True))).scalar_one_or_none()
    if last is None:
        raise Refused("NO_JOB", "This video has never had a job.")
    if not has_ended(last):
        raise Refused("JOB_UNFINISHED", f"Job {last.id} of this video has not ended yet.")
    return last


async def _published(s: WriteSession, video: Video) -> list[str]:
    """Name what the manifests list: qualities, and sound tracks as `audio_0`."""
    pictures = await s.execute(select(VideoQuality.quality).where(VideoQuality.video_id == video.id))
    tracks = await s.execute(select(AudioRenditionRow.track).where(AudioRenditionRow.video_id == video.id))
    return sorted(pictures.scalars()) + [f"{_SOUND}{track}" for track in sorted(tracks.scalars())]


async def _still_there(s: WriteSession, video: Video, keep: list[str]) -> list[str]:
    published = await _published(s, video)
    return [name for name in keep if name in published]


def _refuse_too_large(video: Video, qualities: tuple[str, ...]) -> None:
    short_side = min(video.source_width, video.source_height)
    large = [name for name in qualities if short_side and int(re.match(r"\d+", name)[0]) > short_side]  # type: ignore[index]
    if large:
        raise Refused("QUALITY_TOO_LARGE", f"{', '.join(large)} is larger than the source.")


async def _next_output(s: WriteSession, video: Video) -> str:
    used = (await s.execute(select(Job.output).where(Job.video_id == video.id))).scalars()
    return f"r{max(int(output.removeprefix('r')) for output in used) + 1}"


async def _planner_of(s: WriteSession, video: Video, last: Job) -> int | None:
    """Find the job whose plan has the frame grid of what is published: the newest that published anything."""
    made = exists().where(VideoQuality.job_id == Job.id)
    query = select(Job.id).where(Job.video_id == video.id, Job.plan.is_not(None), made).order_by(Job.id.desc()).limit(1)
    return (await s.execute(query)).scalar_one_or_none()


async def _add_job(s: WriteSession, video: Video, job: Job, ask: Again) -> NewJob:
    job.video_id, job.owner, job.max_attempts = video.id, video.owner, ask.max_attempts
    s.add(job)
    await s.flush()
    await s.refresh(job)  # what the server filled in
    job.workflow_id = workflow_id(VideoId(video.id), JobId(job.id))
    if video.status is not VideoStatus.READY:
        # From here on it is being made again: nothing of its old failure is true any more.
        video.status = VideoStatus.PENDING
        video.error_code = video.error_message = video.playable_at = None
    fields = {"kind": job.kind.value, "output": job.output, "continues_job_id": job.continues_job_id}
    await s.flush()
    plan = await s.execute(select(Job.plan).where(Job.id == job.continues_job_id))
    request = request_of(video, job, plan.scalar_one_or_none())
    await add_event(s, Event("job.created", job.id, f"A {job.kind.value} was asked for.", fields, actor=ask.actor))
    await notify(s, TOPIC_PROGRESS, video.id)
    return NewJob(VideoId(video.id), JobId(job.id), video.slug, video.title, video.status, request)
