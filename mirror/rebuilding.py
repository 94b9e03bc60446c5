"""A job's rows written anew from its story. The same writers are used as when it happened, so the rows are the same."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import delete, func, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert

from contracts.end_steps import FailJob, Finalize, Publish
from contracts.media import SourceFacts
from contracts.plan import TranscodePlan
from contracts.states import AFTER_THE_END, JobKind, QualityStatus, StepName, StepOutcome, Tier, VideoStatus
from contracts.steps import StepProgress, TranscodeRequest
from mirror.claims import StepClaim, WorkerIdentity
from mirror.hooks import TOLD_BEFORE
from mirror.locking import database_now, lock_job
from mirror.numbers import highest_given, leave_alone, pass_over_jobs, pass_over_videos
from mirror.sessions import AnySession, WriteSession
from mirror.tables import Job, JobStep, QualityProgressRow, Video, VideoQuality, Worker, unfinished
from mirror.words import Command
from mirror.writes_end import complete_job, fail_job
from mirror.writes_media import record_renditions
from mirror.writes_steps import StepEnd, StepNews, record_news


class AnotherJobRuns(Exception):
    """An ended job cannot be told again while another one of its video runs: a video has one unfinished job."""


@dataclass(frozen=True)
class ToldStep:
    claim: StepClaim
    worker_name: str
    heard_at: datetime  # its end, or its last heartbeat
    progress: StepProgress | None = None
    end: StepEnd | None = None  # None: it runs
    learned: tuple[SourceFacts | TranscodePlan, ...] = ()


@dataclass(frozen=True)
class JobStory:
    """What Temporal knows of a job, and storage of its renditions."""

    request: TranscodeRequest
    workflow_id: str
    title: str
    started_at: datetime
    tier: Tier
    paused_at: datetime | None = None
    steps: tuple[ToldStep, ...] = ()
    published: Publish | None = None  # with those renditions only that are still stored
    ending: Finalize | FailJob | None = None
    ended_at: datetime | None = None


async def workflows_of(s: AnySession, job_id: int | None) -> list[str]:
    """Name the workflows of one job, or of all."""
    query = select(Job.workflow_id).where(Job.workflow_id.is_not(None)).order_by(Job.id)
    found = (await s.execute(query if job_id is None else query.where(Job.id == job_id))).scalars()
    return [name for name in found if name]


async def rebuild_job(s: WriteSession, story: JobStory) -> None:
    """Forget what the rows say of a job, and tell its story again. Raises AnotherJobRuns.

    The caller has locked the job before it asked Temporal: whoever has news meanwhile waits, and then adds to this.
    Earlier attempts of a step are not in Temporal's history; rows that tell of them are kept.
    """
    s.info[TOLD_BEFORE] = True
    job = await _fresh_job(s, story)
    video = (await s.execute(select(Video).where(Video.id == job.video_id).with_for_update())).scalar_one()
    newest = (await s.execute(select(func.max(Job.id)).where(Job.video_id == video.id))).scalar_one() == job.id
    columns = ("status", "error_code", "error_message", "missing", "duration", "playable_at", "published_at")
    before = {name: getattr(video, name) for name in columns}
    if newest:
        await _forget_video(s, story)
    workers = await _identities(s, {step.worker_name for step in story.steps})
    # The step that writes the end is told of after it, as its recorder would.
    late = [step for step in story.steps if step.claim.step in AFTER_THE_END | {StepName.FINALIZE}]
    for step in _as_it_happened(step for step in story.steps if step not in late):
        await _tell(s, job, step, workers[step.worker_name])
    if story.published is not None and not await _is_replaced(s, job):
        wanted = story.published
        await record_renditions(s, wanted.job_id, wanted.video_id, wanted.renditions, wanted.keep)
    await _tell_end(s, story)
    for step in late:
        await _tell(s, job, step, workers[step.worker_name])
    await _set_times(s, job, story)
    if not newest:
        await s.execute(update(Video).where(Video.id == video.id).values(**before))


async def _fresh_job(s: WriteSession, story: JobStory) -> Job:
    """Make the rows of video and job where they are gone, and reset what the story tells."""
    request = story.request
    await pass_over_videos(s, request.video_id)
    await pass_over_jobs(s, request.job_id)
    brought_back = await s.execute(
        insert(Video)
        .values(
            id=request.video_id,
            title=story.title or request.slug,
            slug=request.slug,
            source_key=request.source_key,
            source_size_bytes=request.source_size_bytes,
            owner=request.owner,
            tier=request.tier,
            created_at=story.started_at,
        )
        .on_conflict_do_nothing()
        .returning(Video.id)
    )
    if brought_back.scalar_one_or_none() is not None:
        # Rows were lost, and Temporal does not know of the oldest videos any more: their sources are not left over.
        await leave_alone(s, await highest_given(s))
    asked = {
        "output": request.output,
        "qualities": list(request.qualities),
        "owner": request.owner,
        "kind": request.kind,
        "keep": list(request.keep),
        "workflow_id": story.workflow_id,
        "workflow_started_at": story.started_at,
    }
    other = select(Job.id).where(Job.video_id == request.video_id, Job.id != request.job_id, unfinished())
    if story.ending is not None and (await s.execute(other)).first() is not None:
        raise AnotherJobRuns(f"Another job of video {request.video_id} runs; job {request.job_id} has to wait for it.")
    put = insert(Job).values(
        id=request.job_id, video_id=request.video_id, tier=request.tier, created_at=story.started_at, **asked
    )
    forgotten = dict.fromkeys(
        "worker_id current_step started_at last_checkpoint completed_at claimed_at claim_expires_at last_error "
        "processed_by_worker_id processed_by_worker_name cancelled_at error_code plan".split()
    )
    numbers = {"progress_percent": 0, "attempt_number": 1, "max_attempts": request.max_attempts}
    again = {**asked, **forgotten, **numbers}
    await s.execute(put.on_conflict_do_update(index_elements=["id"], set_=again))
    await s.execute(delete(QualityProgressRow).where(QualityProgressRow.job_id == request.job_id))
    told = [(step.claim.step_key, step.claim.generation, step.claim.attempt) for step in story.steps]
    kept = (
        select(JobStep.id)
        .where(JobStep.job_id == request.job_id, JobStep.finished_at.is_not(None))
        .where(tuple_(JobStep.step_key, JobStep.generation).in_([fence[:2] for fence in told]))
        .where(tuple_(JobStep.step_key, JobStep.generation, JobStep.attempt).not_in(told))
    )
    await s.execute(delete(JobStep).where(JobStep.job_id == request.job_id, JobStep.id.not_in(kept)))
    s.expire_all()
    job = await lock_job(s, request.job_id)
    assert job is not None
    if story.ending is None:  # what people want counts for more than what Temporal has heard of it
        if Command.PRIORITY not in job.untold:
            job.tier = story.tier
        if Command.PAUSE not in job.untold:
            job.paused_at = story.paused_at and (job.paused_at or story.paused_at)
    return job


async def _forget_video(s: WriteSession, story: JobStory) -> None:
    """Let the video wait, unless an earlier job has made it ready."""
    streams = select(VideoQuality.id).where(
        VideoQuality.video_id == story.request.video_id, VideoQuality.job_id < story.request.job_id
    )
    ready = (await s.execute(streams.limit(1))).first() is not None
    waiting = story.request.kind is JobKind.UPLOAD or not ready
    status = VideoStatus.PENDING if waiting else VideoStatus.READY
    await s.execute(
        update(Video)
        .where(Video.id == story.request.video_id)
        .values(status=status, error_code=None, error_message=None)
        .execution_options(synchronize_session=False)
    )


async def _identities(s: WriteSession, names: set[str]) -> dict[str, WorkerIdentity]:
    """Find workers by the name that Temporal knows; one that nobody registered is its own name."""
    query = select(Worker.worker_name, Worker.worker_id).where(Worker.worker_name.in_(names)).order_by(Worker.id)
    known = {row.worker_name: row.worker_id for row in (await s.execute(query)).all()}
    return {name: WorkerIdentity(known.get(name) or name[:100], name) for name in names}


def _as_it_happened(steps: Iterable[ToldStep]) -> list[ToldStep]:
    """Tell of each step twice, when it began and when it ended: what ran side by side is seen to."""
    told = []
    for step in steps:
        if step.end is not None:
            began = replace(step, heard_at=step.claim.started_at, progress=None, end=None, learned=())
            told += [(began.heard_at, 0, began), (step.heard_at, 1, step)]
        else:
            told.append((step.claim.started_at, 0, step))
    return [step for *_, step in sorted(told, key=lambda moment: moment[:2])]


async def _tell(s: WriteSession, job: Job, step: ToldStep, worker: WorkerIdentity) -> None:
    age_s = max(0.0, (await database_now(s) - step.heard_at).total_seconds())
    news = StepNews(step.claim, step.progress, beat_age_s=age_s, end=step.end, learned=step.learned)
    await record_news(s, job, news, worker)


async def _is_replaced(s: WriteSession, job: Job) -> bool:
    newer = select(VideoQuality.id).where(VideoQuality.video_id == job.video_id, VideoQuality.job_id > job.id)
    return (await s.execute(newer.limit(1))).first() is not None


async def _tell_end(s: WriteSession, story: JobStory) -> None:
    if isinstance(story.ending, Finalize):
        await complete_job(s, story.ending)
    elif isinstance(story.ending, FailJob):
        await fail_job(s, story.ending)


async def _set_times(s: WriteSession, job: Job, story: JobStory) -> None:
    """Put back the moments at which things happened: the writers took this one."""
    await s.flush()
    heard = max((step.heard_at for step in story.steps), default=story.started_at)
    job.last_checkpoint = story.ended_at or heard
    if job.completed_at is not None:
        job.completed_at = story.ended_at or heard
    if job.cancelled_at is not None:
        job.cancelled_at = story.ended_at or heard
    rows = await s.execute(select(QualityProgressRow).where(QualityProgressRow.job_id == job.id))
    steps = (await s.execute(select(JobStep).where(JobStep.job_id == job.id))).scalars().all()
    for row in rows.scalars():
        mine = [step for step in steps if row.quality in step.qualities]
        if row.started_at is not None and mine:
            row.started_at = min(step.started_at for step in mine)
        done = [step.finished_at for step in mine if step.outcome is StepOutcome.COMPLETED and step.finished_at]
        if row.status is QualityStatus.COMPLETED and done:
            row.completed_at = max(done)
    await s.flush()
