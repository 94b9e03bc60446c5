"""One step's news becomes rows: its own, its qualities', the job's, the video's, the worker's; one transaction.

Every write is fenced by (job, step key, generation, attempt): an older attempt changes nothing, and nothing
changes on a job that has ended.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import func, select, update

from contracts.media import SourceFacts
from contracts.plan import TranscodePlan
from contracts.states import AFTER_THE_END, StepName, StepOutcome, WorkerStatus
from contracts.steps import StepProgress
from mirror.claims import DEFAULT_HEARTBEAT_TIMEOUT_S, StepClaim, WorkerIdentity
from mirror.cleaning import clean, jsonable, sentence, tail
from mirror.deriving import generations
from mirror.events import TOPIC_PROGRESS, TOPIC_WORKERS, Event, add_events, notify
from mirror.locking import lock_job
from mirror.reads_steps import attempts_of, done_spans, open_steps
from mirror.redrawing import VideoNow, announce_playable, look_at_video, redraw
from mirror.sessions import WriteSession
from mirror.states import has_ended
from mirror.step_events import end_event, lost_event, started_event, stuck_events
from mirror.tables import Job, JobStep, Worker
from mirror.writes_media import put_facts, put_late_facts, put_plan
from mirror.writes_workers import take_word


@dataclass(frozen=True)
class StepEnd:
    outcome: StepOutcome
    code: str | None = None
    sentence: str | None = None
    detail: str | None = None
    will_retry: bool = False


@dataclass(frozen=True)
class StepNews:
    """The newest that is known of one attempt. Ages, not times: a worker's clock is its own."""

    claim: StepClaim
    progress: StepProgress | None = None
    beat_age_s: float = 0.0
    end: StepEnd | None = None
    learned: tuple[SourceFacts | TranscodePlan, ...] = ()  # what its result said
    claim_s: float | None = None  # how long a beat holds the claim, if not the heartbeat timeout


@dataclass(frozen=True)
class WorkerLoad:
    status: WorkerStatus
    current_job_id: int | None


async def record_step(s: WriteSession, news: StepNews, worker: WorkerIdentity, load: WorkerLoad | None) -> bool:
    """Write what is new of a step; False when it lost to a newer attempt or to the job's end.

    Without a `load` nothing is new of the worker.
    """
    job = await lock_job(s, news.claim.job_id)
    accepted = job is not None and await record_news(s, job, news, worker)
    if load is not None:
        await _record_worker(s, worker, load)
    return accepted


async def record_news(s: WriteSession, job: Job, news: StepNews, worker: WorkerIdentity) -> bool:
    """Write what is new of a step of a locked job; False when it lost."""
    claim = news.claim
    video = await look_at_video(s, job)
    now = video.now
    siblings = await attempts_of(s, job.id, claim.step_key)
    mine = (claim.generation, claim.attempt)
    row = next((step for step in siblings if (step.generation, step.attempt) == mine), None)
    if any((step.generation, step.attempt) > mine for step in siblings):
        await _tell_late(s, row, news)
        if news.end is None or news.end.outcome is not StepOutcome.PARTIAL:  # what was handed back was lost to nobody
            conflicts = Worker.acquire_conflicts + 1
            await s.execute(
                update(Worker).where(Worker.worker_id == worker.worker_id).values(acquire_conflicts=conflicts)
            )
        return False
    if has_ended(job):  # the end was quicker to be written, as when Postgres was slow to take this
        for result in news.learned:
            if isinstance(result, TranscodePlan):
                await put_plan(s, job, result)
    # A row that somebody else declared lost is taken back by its worker; one that ended is closed.
    if row is not None and row.finished_at is not None and row.outcome is not StepOutcome.LOST:
        _add_detail(row, news)
        return False
    if has_ended(job):
        # The plan came with the end; what the probe saw is true whenever it is told.
        for facts in news.learned:
            if isinstance(facts, SourceFacts):
                await put_late_facts(s, job, facts)
    if has_ended(job) and not _is_late_history(job, row, news):
        # That a step runs after the end is no news to the job; how it ends will be.
        return job.completed_at is not None and row is None and claim.step in AFTER_THE_END
    events: list[Event] = []
    if row is None:
        row = _new_row(claim, siblings, worker, now)
        s.add(row)
        events += _supersede(siblings, row, now)
    _update_row(row, news, now)
    if has_ended(job):
        row.will_retry = row.will_retry and claim.step in AFTER_THE_END
    else:
        await s.flush()
        for result in news.learned:
            await (put_facts(s, job, result) if isinstance(result, SourceFacts) else put_plan(s, job, result))
        events += await _record_job(s, job, row, video)
    # How the finalize step ends is the job's own end, and that is told where it is written.
    if news.end is not None and row.step is not StepName.FINALIZE:
        events.append(end_event(row))
    if news.end is not None and not has_ended(job):
        events += stuck_events(row, (step for step in siblings if step is not row))
    await s.flush()
    await add_events(s, events)
    await notify(s, TOPIC_PROGRESS, job.video_id)
    return True


async def _tell_late(s: WriteSession, row: JobStep | None, news: StepNews) -> None:
    """Add why a step was handed back when the next generation, elsewhere, was quicker to tell of itself.

    Only its own line, and only when nobody has said it yet: an attempt that was lost, a zombie's, says nothing more.
    """
    if row is None or news.end is None or news.end.outcome is not StepOutcome.PARTIAL:
        return
    if row.outcome is StepOutcome.PARTIAL and row.error_code is None and news.end.code:
        row.error_code = clean(news.end.code)[:50]
        row.error_message = sentence(news.end.sentence) if news.end.sentence else None
        await s.flush()
        await add_events(s, [end_event(row)])


def _add_detail(row: JobStep, news: StepNews) -> None:
    """Fill in what ffmpeg said when the job's end was written before the failed attempt could tell."""
    if row.outcome is StepOutcome.FAILED and row.error_detail is None and news.end is not None:
        row.error_detail = tail(news.end.detail)


def _is_late_history(job: Job, row: JobStep | None, news: StepNews) -> bool:
    """Tell a step whose line belongs in the history, and only there.

    It ended moments before its job did, perhaps the very one that failed it, or it runs after the end. Only ended
    attempts become rows: nobody would ever close one that was left running. What a cancel stopped is no history.
    """
    if row is not None or news.end is None:
        return False
    if news.end.outcome is StepOutcome.PARTIAL:
        return job.completed_at is not None and news.claim.step in AFTER_THE_END
    return job.cancelled_at is None


def _new_row(claim: StepClaim, siblings: list[JobStep], worker: WorkerIdentity, now: datetime) -> JobStep:
    older = [step for step in siblings if step.generation < claim.generation]
    before = 0
    if older:
        last = max(older, key=lambda step: (step.generation, step.attempt))
        # A generation ends without a failure unless its last attempt says otherwise: drained, paused, told to wait.
        before = last.tries if last.outcome is StepOutcome.FAILED else last.tries - 1
    before = max(before, claim.tries_before)
    return JobStep(
        job_id=claim.job_id,
        step=claim.step,
        step_key=claim.step_key,
        qualities=list(claim.qualities),
        first_segment=claim.span.first_segment if claim.span else None,
        segments=claim.span.segments if claim.span else None,
        generation=claim.generation,
        attempt=claim.attempt,
        tries=before + claim.attempt,
        worker_id=worker.worker_id,
        worker_name=clean(worker.worker_name)[:100] or None,
        queue=claim.queue,
        scheduled_at=claim.scheduled_at,
        started_at=claim.started_at,
        heartbeat_at=now,
        claim_expires_at=now,
        outcome=StepOutcome.RUNNING,
        will_retry=False,
        percent=0.0,
        progress={},
    )


def _supersede(siblings: list[JobStep], newer: JobStep, now: datetime) -> list[Event]:
    """Close the older attempts that never said how they ended."""
    events = []
    for step in siblings:
        if step.outcome is StepOutcome.RUNNING:
            lost = step.generation == newer.generation
            step.outcome = StepOutcome.LOST if lost else StepOutcome.PARTIAL
            step.finished_at = now
            if lost:
                events.append(lost_event(step))
    return events


def _update_row(row: JobStep, news: StepNews, now: datetime) -> None:
    holds_s = news.claim_s or news.claim.heartbeat_timeout_s
    if holds_s <= 0:
        holds_s = DEFAULT_HEARTBEAT_TIMEOUT_S
    row.outcome = StepOutcome.RUNNING
    row.finished_at = None
    row.heartbeat_at = now - timedelta(seconds=news.beat_age_s)
    row.claim_expires_at = row.heartbeat_at + timedelta(seconds=holds_s)
    if news.progress is not None:
        row.progress = jsonable(news.progress)
        row.percent = max(row.percent, min(100.0, news.progress.percent))
    end = news.end
    if end is not None:
        row.outcome = end.outcome
        row.finished_at = max(row.heartbeat_at, row.started_at)
        row.will_retry = end.will_retry
        row.error_code = clean(end.code)[:50] if end.code else None
        row.error_message = sentence(end.sentence) if end.sentence else None
        row.error_detail = tail(end.detail)
        if end.outcome is StepOutcome.COMPLETED:
            row.percent = 100.0


async def _record_job(s: WriteSession, job: Job, row: JobStep, video: VideoNow) -> list[Event]:
    """Let one step's news change the rows of job, qualities and video."""
    attempts = [*await open_steps(s, job.id, but=row.step_key), row]
    done = await done_spans(s, job.id, but=row.step_key, generations=generations(job.plan))
    events: list[Event] = []
    if job.started_at is None:
        job.started_at = row.started_at
        events.append(started_event(row))
    transcoded = bool(done.qualities) or any(step.step is StepName.TRANSCODE for step in attempts)
    if row.step is StepName.TRANSCODE or not transcoded:  # the record for ever names who encoded
        job.processed_by_worker_id = row.worker_id
        job.processed_by_worker_name = row.worker_name
    job.last_checkpoint = video.now
    events += await redraw(s, job, attempts, video, done)
    return events + await announce_playable(s, job, attempts, done, row, video)


async def _record_worker(s: WriteSession, worker: WorkerIdentity, load: WorkerLoad) -> None:
    await s.flush()
    # The job may have been deleted since: the subquery then gives NULL instead of a broken reference.
    job_id = select(Job.id).where(Job.id == load.current_job_id).scalar_subquery()
    word = await take_word(s, worker.worker_id, load.status, {"current_job_id": job_id, "asked_at": func.now()})
    if word is not None and word.changed:
        await notify(s, TOPIC_WORKERS, worker.worker_id)
