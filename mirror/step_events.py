"""The lines that steps add to a job's story. Each is told once, whoever tells it first."""

from collections.abc import Iterable
from typing import Any

from contracts.errors import BuildMissing, Drained, GpuBusy, ScratchFull, StorageAway, WorkerBroken, WorkerFull
from contracts.states import UNTIL_DONE, EventLevel, StepOutcome
from contracts.steps import MissingRendition
from mirror.events import Event
from mirror.tables import JobStep

# Codes that mean "not now", not "broken": they cost no attempt.
LATER_CODES = frozenset(
    each.code for each in (GpuBusy, ScratchFull, StorageAway, WorkerFull, Drained, BuildMissing, WorkerBroken)
)

# So often a step has failed that would never give up, or was told that the disk is full or the storage away, before
# somebody is called. By then the first has been tried for a minute, a disk looked at for most of an hour, and a storage
# been away for ten minutes.
STUCK_FROM_ATTEMPT = 5
STUCK_FROM_WAITS = 10
WAITS_UNTIL = {ScratchFull.code: "there is room", StorageAway.code: "the storage answers"}


def quality_event(event: str, job_id: int, quality: str) -> Event:
    """Tell something of one quality, once per job: several of them share a step."""
    verb = event.partition(".")[2]
    return Event(event, job_id, f"{quality} {verb}.", {"quality": quality}, step_key=f"quality:{quality}")


def started_event(step: JobStep) -> Event:
    """Tell of the job's first claim."""
    fields = {"worker_id": step.worker_id, "worker_name": step.worker_name}
    return Event("job.started", step.job_id, f"{step.worker_name or step.worker_id} started.", fields)


def playable_event(job_id: int) -> Event:
    """Tell that people can begin to watch, while the rest is still encoded."""
    return Event("video.playable", job_id, "It can be watched from the start while it is encoded.")


def missing_event(job_id: int, missing: MissingRendition) -> Event:
    """Tell what a ready video does without."""
    fields = {"quality": missing.name, "code": missing.code}
    message = f"{missing.name} is missing: {missing.sentence}"
    return Event("quality.failed", job_id, message, fields, EventLevel.WARNING, step_key=f"quality:{missing.name}")


def lost_event(step: JobStep) -> Event:
    message = f"{step.worker_name or step.worker_id} vanished during {step.step.value}; it is tried again."
    return _of(step, "step.lost", message, EventLevel.WARNING)


def stale_event(step: JobStep) -> Event:
    """Tell that a claim ran out and that Temporal gives the step to somebody else."""
    message = f"{step.worker_name or step.worker_id} fell silent during {step.step.value}; it is given out again."
    return _of(step, "requeued:stale", message, EventLevel.WARNING)


def end_event(step: JobStep) -> Event:
    """Tell how an attempt ended."""
    match step.outcome:
        case StepOutcome.COMPLETED:
            return _of(step, f"{step.step.value}.done", None)
        case StepOutcome.FAILED if step.will_retry:
            return _of(step, "step.retrying", step.error_message, EventLevel.WARNING)
        case StepOutcome.FAILED:
            return _of(step, "step.failed", step.error_message, EventLevel.ERROR)
        case StepOutcome.PARTIAL if step.error_code == Drained.code:
            return _of(step, "aborted:shutdown", step.error_message)
        case StepOutcome.PARTIAL if step.error_code in LATER_CODES:
            return _of(step, "job.retry_later", step.error_message, EventLevel.WARNING)
        case StepOutcome.PARTIAL:
            return _of(step, "step.handed_back", step.error_message)
        case _:
            return _of(step, f"step.{step.outcome.value}", step.error_message)


def stuck_events(step: JobStep, earlier: Iterable[JobStep]) -> list[Event]:
    """Tell, once per job and phase, that what is repeated without end needs a person.

    `earlier` are the step's other attempts: drains and pauses make generations too, and need nobody.
    """
    name = step.step.value
    waits = sum(each.error_code == step.error_code for each in (*earlier, step))
    until = WAITS_UNTIL.get(step.error_code or "")
    if step.step in UNTIL_DONE and step.will_retry and step.attempt >= STUCK_FROM_ATTEMPT:
        message = f"{name} failed {step.attempt} times and is tried again until it succeeds: {step.error_message}"
    elif step.outcome is StepOutcome.PARTIAL and until and waits >= STUCK_FROM_WAITS:
        message = f"{name} waits until {until}, however long that takes: {step.error_message}"
    else:
        return []
    fields = {"step": name, "code": step.error_code}
    return [Event("job.stuck", step.job_id, message, fields, EventLevel.ERROR, step_key=name)]


def _of(step: JobStep, event: str, message: str | None, level: EventLevel = EventLevel.INFO) -> Event:
    fields: dict[str, Any] = {"step": step.step.value, "worker_id": step.worker_id, "tries": step.tries}
    if step.finished_at is not None:
        fields["seconds"] = round((step.finished_at - step.started_at).total_seconds(), 3)
    if step.qualities:
        fields["qualities"] = step.qualities
    if step.error_code:
        fields["code"] = step.error_code
    return Event(
        event,
        step.job_id,
        message,
        fields,
        level,
        actor=step.worker_id,
        step_key=step.step_key,
        generation=step.generation,
        attempt=step.attempt,
    )
