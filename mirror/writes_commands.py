"""Commands on a job: cancel, pause, resume, priority.

The row holds the wish and is written first; `untold` and `command_at` say that Temporal has not heard of it yet.
Telling is safe to repeat, so that a wish is neither lost nor stuck, whoever dies in between: see api/telling.py.
"""

from datetime import datetime

from contracts.end_steps import FailJob
from contracts.errors import CANCELLED, JOB_ENDED
from contracts.ids import JobId, VideoId
from contracts.states import EventLevel, Tier
from mirror.commands import Refused, Wish, wish_of
from mirror.events import TOPIC_PROGRESS, Event, add_event, notify
from mirror.locking import database_now, lock_job
from mirror.sessions import WriteSession
from mirror.states import has_ended
from mirror.tables import Job
from mirror.words import Command
from mirror.writes_end import fail_job


async def cancel_job(s: WriteSession, job_id: JobId, actor: str | None) -> Wish | None:
    """Wish a job cancelled. One that has ended stays as it is; one that Temporal never had ends here and now."""
    job = await lock_job(s, job_id)
    if job is None or has_ended(job):
        return wish_of(job, ended=True) if job else None
    now = await database_now(s)
    if job.cancel_requested_at is None:
        job.cancel_requested_at = now
        await add_event(s, _event("job.cancel_requested", job, "Somebody asked to cancel it.", actor))
    _put_down(job, Command.CANCEL, now)
    await s.flush()
    if job.workflow_started_at is None:
        await _end_cancelled(s, job, "The job was cancelled before it began.")
    return wish_of(job, ended=has_ended(job))


async def pause_job(s: WriteSession, job_id: JobId, actor: str | None) -> Wish | None:
    """Wish that nothing of a job runs until it is resumed; twice is once."""
    job = await _lock_unfinished(s, job_id)
    if job is not None and job.paused_at is None:
        job.paused_at = now = await database_now(s)
        _put_down(job, Command.PAUSE, now)
        await _tell_story(s, job, _event("job.paused", job, "Paused: its workers are free for others.", actor))
    return wish_of(job, ended=False) if job else None


async def resume_job(s: WriteSession, job_id: JobId, actor: str | None) -> Wish | None:
    """Wish that a job goes on; one that is not paused stays as it is."""
    job = await _lock_unfinished(s, job_id)
    if job is not None and job.paused_at is not None:
        job.paused_at = None
        _put_down(job, Command.PAUSE, await database_now(s))
        await _tell_story(s, job, _event("job.resumed", job, "It goes on where it was.", actor))
    return wish_of(job, ended=False) if job else None


async def prioritize_job(s: WriteSession, job_id: JobId, tier: Tier, actor: str | None) -> Wish | None:
    """Wish that a job waits with another tier from now on, what is queued included."""
    job = await _lock_unfinished(s, job_id)
    if job is not None and job.tier is not tier:
        event = _event(
            "job.priority", job, f"It waits as {tier.value} now.", actor, was=job.tier.value, tier=tier.value
        )
        job.tier = tier
        _put_down(job, Command.PRIORITY, await database_now(s))
        await _tell_story(s, job, event)
    return wish_of(job, ended=False) if job else None


async def told(s: WriteSession, wish: Wish) -> None:
    """Note that Temporal has heard, unless there is a newer wish by now."""
    job = await lock_job(s, wish.job_id)
    if job is not None and job.command_at == wish.at:
        job.untold, job.command_at = [], None
        await s.flush()


async def withdraw_pause(s: WriteSession, wish: Wish) -> None:
    """Take back a pause that came too late: the workflow is publishing, and will not stop for it."""
    job = await lock_job(s, wish.job_id)
    if job is not None and job.command_at == wish.at:
        job.paused_at = job.command_at = None
        job.untold = []
        await _tell_story(s, job, _event("job.pause_refused", job, "Too late to pause: it is being published.", None))


async def end_lost(s: WriteSession, wish: Wish) -> None:
    """End a cancelled job that Temporal no longer runs and that nobody else would end."""
    job = await lock_job(s, wish.job_id)
    if job is not None and not has_ended(job):
        await _end_cancelled(s, job, "The job was cancelled.")


async def _lock_unfinished(s: WriteSession, job_id: JobId) -> Job | None:
    job = await lock_job(s, job_id)
    if job is not None and (has_ended(job) or job.cancel_requested_at is not None):
        ended = has_ended(job)
        raise Refused(JOB_ENDED, f"Job {job_id} has ended." if ended else f"Job {job_id} is being cancelled.")
    return job


async def _end_cancelled(s: WriteSession, job: Job, sentence: str) -> None:
    request = FailJob(job_id=JobId(job.id), video_id=VideoId(job.video_id), code=CANCELLED, sentence=sentence)
    await fail_job(s, request)


def _put_down(job: Job, command: Command, now: datetime) -> None:
    job.untold = [*(name for name in job.untold if name != command), command]
    job.command_at = now


def _event(name: str, job: Job, message: str, actor: str | None, **fields: str) -> Event:
    level = EventLevel.WARNING if name == "job.cancel_requested" else EventLevel.INFO
    return Event(name, job.id, message, dict(fields), level, actor=actor, repeats=True)


async def _tell_story(s: WriteSession, job: Job, event: Event) -> None:
    await s.flush()
    await add_event(s, event)
    await notify(s, TOPIC_PROGRESS, job.video_id)
