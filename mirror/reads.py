"""Every question the project asks of the mirror. Nothing here writes, and no row leaves: frozen views do."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Select, column, func, or_, select, table
from sqlalchemy.orm import aliased

from contracts.end_steps import VerifiedRenditions
from contracts.ids import JobId, VideoId
from contracts.states import JobState, Tier, VideoStatus
from contracts.steps import TranscodeRequest
from mirror.cursors import BadCursor, cursor_of, id_of, is_id
from mirror.reads_steps import tried_by
from mirror.reads_tracks import tracks_of
from mirror.reads_workers import has_work_left, is_there
from mirror.sessions import AnySession
from mirror.showing import (
    show_event,
    show_job,
    show_progress,
    show_step,
    show_video,
    show_video_rendition,
)
from mirror.tables import (
    Job,
    JobEvent,
    JobStep,
    QualityProgressRow,
    Video,
    VideoQuality,
    Worker,
    unfinished,
)
from mirror.views import EventView, HealthCounts, JobView, Page, ProgressView, ReportView, StepView, VideoView
from mirror.writes_intake import idempotent, request_of

__all__ = [
    "BadCursor",
    "events",
    "health_counts",
    "idempotent",
    "job",
    "jobs_page",
    "listed",
    "progress",
    "progress_of",
    "renditions",
    "report",
    "steps",
    "unstarted_jobs",
    "video",
    "video_by_slug",
    "videos_page",
]

WORKER_SILENCE_S = 300.0
JOB_STATES = table("job_states", column("job_id"), column("state"))

_CONTINUED = aliased(Job)  # made once: it takes a proxy per column, and is asked for every three seconds


async def video(s: AnySession, video_id: VideoId) -> VideoView | None:
    """Find a video, deleted or not, unless it was purged."""
    if not is_id(video_id):
        return None
    return await _one_video(s, select(Video).where(Video.id == video_id, Video.purged_at.is_(None)))


async def report(s: AnySession, video_id: VideoId) -> ReportView:
    """Read what was found in a video's source and decided by its newest plan."""
    facts = await s.execute(select(Video.source_facts).where(Video.id == video_id))
    newest = select(Job.plan).where(Job.video_id == video_id, Job.plan.is_not(None)).order_by(Job.id.desc()).limit(1)
    return ReportView(facts=facts.scalar_one_or_none(), plan=(await s.execute(newest)).scalar_one_or_none())


async def video_by_slug(s: AnySession, slug: str) -> VideoView | None:
    if "\x00" in slug:
        return None
    return await _one_video(s, select(Video).where(Video.slug == slug, Video.purged_at.is_(None)))


async def videos_page(
    s: AnySession,
    *,
    limit: int = 50,
    cursor: str | None = None,
    status: VideoStatus | None = None,
    owner: str | None = None,
    tier: Tier | None = None,
    search: str | None = None,
    deleted: bool = False,
) -> Page[VideoView]:
    """List videos, newest first: those that are there, or those that were deleted and can be restored."""
    query = listed(status=status, owner=owner, tier=tier, search=search, deleted=deleted).where(
        Video.id < id_of(cursor)
    )
    rows = (await s.execute(query.limit(limit + 1))).scalars().all()
    more = len(rows) > limit
    return Page[VideoView](
        items=tuple(await _show_videos(s, rows[:limit])), next_cursor=cursor_of(rows[limit - 1].id) if more else None
    )


def listed(
    *,
    status: VideoStatus | None = None,
    owner: str | None = None,
    tier: Tier | None = None,
    search: str | None = None,
    deleted: bool = False,
) -> Select[Video]:
    """Select the videos of a list in its order. Each filter has an index that holds them in it; words are looked for
    on the way down."""
    query = select(Video).order_by(Video.id.desc())
    if deleted:
        query = query.where(Video.deleted_at.is_not(None), Video.purged_at.is_(None))
    else:
        query = query.where(Video.deleted_at.is_(None))
    if status is not None:
        query = query.where(Video.status == status)
    if owner is not None:
        query = query.where(Video.owner == owner)
    if tier is not None:
        query = query.where(Video.tier == tier)
    if search:
        words = or_(Video.title.icontains(search, autoescape=True), Video.slug.icontains(search, autoescape=True))
        query = query.where(words)
    return query


async def job(s: AnySession, job_id: JobId) -> JobView | None:
    if not is_id(job_id):
        return None
    row = (await s.execute(select(Job).where(Job.id == job_id))).scalar_one_or_none()
    return (await _show_jobs(s, [row]))[0] if row else None


async def jobs_page(
    s: AnySession, *, state: JobState | None = None, limit: int = 50, cursor: str | None = None
) -> Page[JobView]:
    """List jobs, newest first, of one state or of all."""
    query = select(Job).where(Job.id < id_of(cursor))
    if state is not None:
        query = query.where(Job.id.in_(select(JOB_STATES.c.job_id).where(JOB_STATES.c.state == state.value)))
    rows = (await s.execute(query.order_by(Job.id.desc()).limit(limit + 1))).scalars().all()
    more = len(rows) > limit
    return Page[JobView](
        items=tuple(await _show_jobs(s, rows[:limit])), next_cursor=cursor_of(rows[limit - 1].id) if more else None
    )


async def events(s: AnySession, job_id: JobId, *, after: int = 0, limit: int = 500) -> list[EventView]:
    """Read a job's story in order, from behind an event on."""
    if not is_id(job_id) or (after and not is_id(after)):
        return []
    query = select(JobEvent).where(JobEvent.job_id == job_id, JobEvent.id > after).order_by(JobEvent.id).limit(limit)
    return [show_event(row) for row in (await s.execute(query)).scalars()]


async def steps(s: AnySession, job_id: JobId) -> list[StepView]:
    """Read every attempt of every step, in the order they began."""
    if not is_id(job_id):
        return []
    query = select(JobStep).where(JobStep.job_id == job_id).order_by(JobStep.started_at, JobStep.id)
    return [show_step(row) for row in (await s.execute(query)).scalars()]


async def progress(s: AnySession, video_id: VideoId) -> ProgressView | None:
    """Tell how far a video's newest job is."""
    if not is_id(video_id):
        return None
    row = (await s.execute(select(Video).where(Video.id == video_id))).scalar_one_or_none()
    if row is None:
        return None
    newest = select(Job).where(Job.video_id == video_id).order_by(Job.id.desc()).limit(1)
    jobs = (await s.execute(newest)).scalars().all()
    views = await _show_jobs(s, jobs)
    return show_progress(row, views[0] if views else None, await _now(s))


async def progress_of(s: AnySession, video_ids: Sequence[int]) -> list[ProgressView]:
    """Tell how far each of several videos is, in five queries; those that are deleted or unknown are left out."""
    ids = [video_id for video_id in video_ids if is_id(video_id)]
    if not ids:
        return []
    videos = (await s.execute(select(Video).where(Video.id.in_(ids), Video.deleted_at.is_(None)))).scalars().all()
    newest = select(func.max(Job.id)).where(Job.video_id.in_(ids)).group_by(Job.video_id)
    rows = (await s.execute(select(Job).where(Job.id.in_(newest)))).scalars().all()
    jobs = {view.video_id: view for view in await _show_jobs(s, rows)}
    now = await _now(s)
    return [show_progress(row, jobs.get(row.id), now) for row in videos]


async def unstarted_jobs(s: AnySession, *, older_than_s: float, limit: int = 100) -> list[TranscodeRequest]:
    """List what was committed and never reached Temporal, oldest first; a paused one waits for its resume.

    One that Temporal had and forgot has recorded steps: it goes on in later generations, and keeps to its own plan.
    """
    continued = _CONTINUED
    last = select(func.max(JobStep.generation)).where(JobStep.job_id == Job.id).scalar_subquery()
    query = (
        select(Video, Job, continued.plan, last)
        .join(Job, Job.video_id == Video.id)
        .outerjoin(continued, continued.id == Job.continues_job_id)
        .where(Job.workflow_started_at.is_(None), Job.paused_at.is_(None), unfinished())
        .where(Video.deleted_at.is_(None))
        .where(Job.created_at <= func.now() - func.make_interval(0, 0, 0, 0, 0, 0, older_than_s))
        .order_by(Job.id)
        .limit(limit)
    )
    return [
        request_of(video, job, plan)
        if last is None
        else request_of(video, job, plan, first_generation=last + 1, tried=await tried_by(s, job.id))
        for video, job, plan, last in (await s.execute(query)).all()
    ]


async def health_counts(s: AnySession, *, worker_silence_s: float = WORKER_SILENCE_S) -> HealthCounts:
    """Count workers that are heard from, jobs that wait and run, videos by status."""
    workers = select(func.count()).select_from(Worker).where(is_there(worker_silence_s), has_work_left())
    per_state = select(JOB_STATES.c.state, func.count()).group_by(JOB_STATES.c.state)
    states = {row[0]: row[1] for row in await s.execute(per_state)}
    per_status = select(Video.status, func.count()).where(Video.deleted_at.is_(None)).group_by(Video.status)
    videos = {row[0]: row[1] for row in await s.execute(per_status)}
    waiting = (JobState.UNCLAIMED, JobState.RETRYING, JobState.EXPIRED)
    return HealthCounts(
        active_workers=(await s.execute(workers)).scalar_one(),
        pending_jobs=sum(states.get(state.value, 0) for state in waiting),
        processing_jobs=states.get(JobState.CLAIMED.value, 0),
        videos={status: videos.get(status, 0) for status in VideoStatus},
    )


async def renditions(s: AnySession, video_id: VideoId) -> VerifiedRenditions:
    """Read what a video's manifests list: the largest rendition first."""
    pictures = (await s.execute(_qualities_of([video_id]))).scalars()
    audio, subtitles = (await tracks_of(s, [video_id]))[video_id]
    return VerifiedRenditions(
        video=tuple(show_video_rendition(row) for row in pictures), audio=tuple(audio), subtitles=tuple(subtitles)
    )


def _qualities_of(video_ids: Sequence[int]) -> Select[VideoQuality]:
    largest = (VideoQuality.width * VideoQuality.height).desc()
    return select(VideoQuality).where(VideoQuality.video_id.in_(video_ids)).order_by(largest, VideoQuality.quality)


async def _now(s: AnySession) -> datetime:
    now: datetime = (await s.execute(select(func.now()))).scalar_one()
    return now


async def _one_video(s: AnySession, query: Select[Video]) -> VideoView | None:
    row = (await s.execute(query)).scalar_one_or_none()
    return (await _show_videos(s, [row]))[0] if row else None


async def _show_videos(s: AnySession, rows: Sequence[Video]) -> list[VideoView]:
    """Show videos with their newest job and renditions, in four queries however many they are."""
    ids = [row.id for row in rows]
    if not ids:
        return []
    newest = select(Job.video_id, func.max(Job.id)).where(Job.video_id.in_(ids)).group_by(Job.video_id)
    jobs = {row[0]: row[1] for row in await s.execute(newest)}
    qualities: dict[int, list[VideoQuality]] = defaultdict(list)
    for quality in (await s.execute(_qualities_of(ids))).scalars():
        qualities[quality.video_id].append(quality)
    tracks = await tracks_of(s, ids)
    return [show_video(row, jobs.get(row.id), qualities[row.id], tracks[row.id]) for row in rows]


async def _show_jobs(s: AnySession, rows: Sequence[Job]) -> list[JobView]:
    ids = [row.id for row in rows]
    if not ids:
        return []
    largest = (QualityProgressRow.width * QualityProgressRow.height).desc()
    query = (
        select(QualityProgressRow).where(QualityProgressRow.job_id.in_(ids)).order_by(largest, QualityProgressRow.id)
    )
    qualities: dict[int, list[QualityProgressRow]] = defaultdict(list)
    for quality in (await s.execute(query)).scalars():
        qualities[quality.job_id].append(quality)
    now = await _now(s)
    return [show_job(row, qualities[row.id], now) for row in rows]
