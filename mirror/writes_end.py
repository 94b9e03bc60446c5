"""The end of a job, happy or not. Written by an activity that is repeated until Postgres takes it: safe to repeat."""

from datetime import datetime
from typing import Any

from sqlalchemy import and_, case, delete, func, select, true, update
from sqlalchemy.dialects.postgresql import insert

from contracts.end_steps import FailJob, Finalize
from contracts.errors import CANCELLED, RETRIES_EXHAUSTED
from contracts.states import EventLevel, JobKind, QualityStatus, StepName, StepOutcome, VideoStatus, WorkerStatus
from contracts.steps import MissingRendition
from mirror.cleaning import clean, sentence
from mirror.deriving import latest_attempts
from mirror.events import TOPIC_COMPLETE, TOPIC_PROGRESS, Event, add_event, add_events, notify
from mirror.locking import database_now, lock_job
from mirror.sessions import WriteSession
from mirror.states import has_ended
from mirror.step_events import end_event, missing_event, quality_event
from mirror.tables import Job, JobStep, QualityProgressRow, Transcription, Video, Worker
from mirror.writes_media import put_plan
from mirror.writes_publishing import published_by


async def complete_job(s: WriteSession, request: Finalize) -> bool:
    """Write the happy end; False when the job had ended before, and then nothing changes."""
    job = await lock_job(s, request.job_id)
    if job is None or has_ended(job):
        return False
    now = await database_now(s)
    if request.plan is not None:
        await put_plan(s, job, request.plan)
    job.completed_at = now
    job.progress_percent = 100
    job.current_step = StepName.FINALIZE
    job.last_checkpoint = now
    job.last_error = None
    job.error_code = None
    job.started_at = job.started_at or now
    await _fulfil_retranscode(s, job)
    if request.notes:
        known = job.plan or {}
        job.plan = {**known, "notes": [*known.get("notes", ()), *map(clean, request.notes)]}
    await s.flush()
    still_missing = await _still_missing(s, job, request)
    await s.execute(
        update(Video)
        .where(Video.id == job.video_id)
        .values(
            status=VideoStatus.READY,
            duration=request.duration_s,
            error_message=None,
            error_code=None,
            playable_at=func.coalesce(Video.playable_at, now),
            published_at=published_by(now),
            missing=still_missing,
            updated_at=now,
        )
    )
    await _complete_qualities(s, job.id, request.qualities, now)
    await _miss(s, job.id, request.missing)
    # The story came this far, so every step it needed has ended well, whether or not its recorder got to say so.
    lost = frozenset(missing.name for missing in request.missing)
    await _close_steps(s, job.id, StepOutcome.COMPLETED, now, lost)
    message = f"Ready to stream in {', '.join(request.qualities)}." if request.qualities else "Ready to stream."
    fields: dict[str, Any] = {"qualities": list(request.qualities), "duration_s": request.duration_s}
    if request.missing:
        fields["missing"] = [missing.name for missing in request.missing]
        message += f" Missing: {', '.join(fields['missing'])}."
    if job.cancel_requested_at is not None:
        message += " The cancel came too late."
    await add_event(s, Event("job.succeeded", job.id, message, fields))
    await _leave_job(s, job)
    return True


async def fail_job(s: WriteSession, request: FailJob) -> bool:
    """Write the unhappy end; False when the job had ended before, and then nothing changes.

    A ready video stays ready: it was a retranscode that failed, and the stream it had is still there.
    """
    job = await lock_job(s, request.job_id)
    if job is None or has_ended(job):
        return False
    now = await database_now(s)
    if request.plan is not None:
        await put_plan(s, job, request.plan)
    cancelled = request.code == CANCELLED
    why = sentence(request.sentence) or "It failed without saying why."
    code = clean(request.code)[:50]
    job.error_code = code
    job.last_checkpoint = now
    if cancelled:
        job.cancelled_at = now
    else:
        await _keep_failed_claim(s, job, request, now)
        job.last_error = why
        if code == RETRIES_EXHAUSTED:  # also when the lost attempts never got to tell of themselves
            job.attempt_number = job.max_attempts
        # Derived state: failed is "an error, and no try left". A fatal error leaves tries; they are given up here.
        job.max_attempts = min(job.max_attempts, job.attempt_number)
    await s.flush()
    # What a cancelled job has made is removed, so that nobody can have begun to watch it.
    playable_at = {"playable_at": None} if cancelled else {}
    await s.execute(
        update(Video)
        .where(Video.id == job.video_id, Video.status != VideoStatus.READY)
        .values(status=VideoStatus.FAILED, error_code=code, error_message=why, updated_at=now, **playable_at)
    )
    await s.execute(
        update(QualityProgressRow)
        .where(QualityProgressRow.job_id == job.id)
        .where(QualityProgressRow.status.in_([QualityStatus.PENDING, QualityStatus.IN_PROGRESS]))
        .values(status=QualityStatus.FAILED, error_message=why)
    )
    await _close_steps(s, job.id, StepOutcome.CANCELLED, now)
    if cancelled:
        await _cancel_handed_back(s, job.id)
    name, level = ("job.cancelled", EventLevel.WARNING) if cancelled else ("job.failed", EventLevel.ERROR)
    fields = {"code": code, "step": request.failed_step, "attempts": job.attempt_number}
    await add_event(s, Event(name, job.id, why, fields, level))
    await _leave_job(s, job)
    return True


async def _fulfil_retranscode(s: WriteSession, job: Job) -> None:
    """Do, with the new stream in its place, what the retranscode was told to remove; then the note has served."""
    if job.retranscode_metadata and job.retranscode_metadata.get("delete_transcription"):
        await s.execute(delete(Transcription).where(Transcription.video_id == job.video_id))
    job.retranscode_metadata = None


async def _still_missing(s: WriteSession, job: Job, request: Finalize) -> list[dict[str, str]]:
    """List what the video does without from now on: of what this job kept, what was missing before is so still."""
    found = [entry.model_dump() for entry in request.missing]
    if not job.keep:
        return found
    before = (await s.execute(select(Video.missing).where(Video.id == job.video_id))).scalar_one_or_none() or []
    settled = {*request.qualities, *(entry["name"] for entry in found)}
    if job.kind is JobKind.RETRY:
        settled |= {entry["name"] for entry in before}  # it was made for them, and says of each that fails so
    return [entry for entry in before if entry["name"] not in settled] + found


async def _complete_qualities(s: WriteSession, job_id: int, qualities: tuple[str, ...], now: datetime) -> None:
    """Mark qualities whole, and tell of those whose recorder had not told yet."""
    for quality in qualities:  # with Postgres away for long, the plan's rows may never have been written
        missing = insert(QualityProgressRow).values(job_id=job_id, quality=quality)
        await s.execute(missing.on_conflict_do_nothing())
    done = await s.execute(
        update(QualityProgressRow)
        .where(
            QualityProgressRow.job_id == job_id,
            QualityProgressRow.quality.in_(qualities),
            QualityProgressRow.status != QualityStatus.COMPLETED,
        )
        .values(
            status=QualityStatus.COMPLETED,
            segments_completed=func.coalesce(QualityProgressRow.segments_total, QualityProgressRow.segments_completed),
            progress_percent=100,
            started_at=func.coalesce(QualityProgressRow.started_at, now),
            completed_at=func.coalesce(QualityProgressRow.completed_at, now),
            error_message=None,
        )
        .returning(QualityProgressRow.quality)
    )
    await add_events(s, [quality_event("quality.completed", job_id, quality) for quality in done.scalars()])


async def _miss(s: WriteSession, job_id: int, missing: tuple[MissingRendition, ...]) -> None:
    """Say what a ready video does without, and why; a retry reads it here."""
    for each in missing:
        # Sound has no row of its own: `quality` names rungs only. Its line is the event's.
        if not each.name.startswith("audio_"):
            lost = {"status": QualityStatus.FAILED, "error_message": sentence(each.sentence)}
            put = insert(QualityProgressRow).values(job_id=job_id, quality=each.name, **lost)
            await s.execute(put.on_conflict_do_update(constraint="uq_job_quality", set_=lost))
        await add_event(s, missing_event(job_id, each))


async def _keep_failed_claim(s: WriteSession, job: Job, request: FailJob, now: datetime) -> None:
    """Keep, for audit, which step failed, who held it and how often it was tried."""
    key = request.failed_step.partition("~")[0]  # an activity id: the step's key, then its generation
    name = key.partition(":")[0]
    if name in list(StepName):
        job.current_step = StepName(name)
    # The attempt may still read as running: its worker's recorder races with this write.
    outcomes = [StepOutcome.FAILED, StepOutcome.LOST] + ([StepOutcome.RUNNING] if name else [])
    for_good = and_(JobStep.outcome == StepOutcome.FAILED, JobStep.will_retry.is_(False))
    failed = await s.execute(
        select(JobStep)
        .where(JobStep.job_id == job.id, JobStep.outcome.in_(outcomes))
        .where(JobStep.step_key == key if key else true())
        .order_by(for_good.desc(), JobStep.started_at.desc(), JobStep.id.desc())
        .limit(1)
    )
    step = failed.scalar_one_or_none()
    if step is None:
        return
    if step.outcome is StepOutcome.RUNNING:
        step.outcome = StepOutcome.FAILED
        step.finished_at = now
        step.error_code = clean(request.code)[:50]
        step.error_message = sentence(request.sentence)
        await add_event(s, end_event(step))
    job.worker_id = step.worker_id
    job.claimed_at = step.started_at
    job.claim_expires_at = step.claim_expires_at
    job.attempt_number = min(step.tries, job.max_attempts)


async def _close_steps(
    s: WriteSession, job_id: int, outcome: StepOutcome, now: datetime, lost: frozenset[str] = frozenset()
) -> None:
    """End what still reads as running. The step that writes this end is one of them, and it ends well."""
    running = await s.execute(select(JobStep).where(JobStep.job_id == job_id, JobStep.finished_at.is_(None)))
    for step in running.scalars().all():
        step.finished_at = now
        step.outcome = StepOutcome.COMPLETED if step.step is StepName.FINALIZE else outcome
        if step.qualities and lost.issuperset(step.qualities):
            step.outcome = StepOutcome.FAILED
        if step.outcome is StepOutcome.COMPLETED:
            step.percent = 100.0
        if step.step is not StepName.FINALIZE:  # the job's own end tells that
            await add_event(s, end_event(step))


async def _cancel_handed_back(s: WriteSession, job_id: int) -> None:
    """Call cancelled what was handed back and never finished: a step cannot tell a cancel from a pause."""
    attempts = (await s.execute(select(JobStep).where(JobStep.job_id == job_id))).scalars()
    for step in latest_attempts(attempts):
        if step.outcome is StepOutcome.PARTIAL and step.error_code is None:
            step.outcome = StepOutcome.CANCELLED


async def _leave_job(s: WriteSession, job: Job) -> None:
    """Free the workers that show this job, and ring the bell."""
    freed = await s.execute(
        update(Worker)
        .where(Worker.current_job_id == job.id)
        .values(
            current_job_id=None,
            # Their own recorder corrects this within moments if they hold more.
            status=case((Worker.status == WorkerStatus.BUSY, WorkerStatus.IDLE.value), else_=Worker.status),
        )
        .returning(Worker.worker_id)
    )
    for worker_id in freed.scalars():
        await notify(s, "worker_status", worker_id)
    await notify(s, TOPIC_PROGRESS, job.video_id)
    await notify(s, TOPIC_COMPLETE, job.video_id)
