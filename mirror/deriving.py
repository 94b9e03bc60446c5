"""From the steps of a job to the picture people see: claim, phase, percent, tries, qualities. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from contracts.states import AFTER_THE_END, UNTIL_DONE, QualityStatus, StepName, StepOutcome
from contracts.steps import generation_in
from mirror.tables import Job, JobStep, QualityProgressRow

ORDER = {step: place for place, step in enumerate(StepName)}

# What of the job's hundred percent each phase is worth; the last one comes with the end itself.
WEIGHTS = {
    StepName.PROBE: 1.0,
    StepName.REMUX: 0.0,
    StepName.PLAN: 1.0,
    StepName.THUMBNAIL: 1.0,
    StepName.AUDIO: 3.0,
    StepName.SUBTITLES: 0.0,
    StepName.TRANSCODE: 90.0,
    StepName.VERIFY: 1.0,
    StepName.MASTER_PLAYLIST: 1.0,
    StepName.PUBLISH: 1.0,
    StepName.FINALIZE: 1.0,
}


@dataclass(frozen=True)
class JobPicture:
    held: JobStep | None  # the running step whose claim lasts longest
    current_step: StepName | None  # None: nothing runs, keep what was shown
    percent: int
    attempt_number: int
    last_error: str | None
    awaits_verdict: bool  # a step failed for good; the terminal activity decides what that means


@dataclass(frozen=True)
class QualityPicture:
    status: QualityStatus
    segments_completed: int
    percent: int
    error_message: str | None


@dataclass(frozen=True)
class DoneQuality:
    spans: Mapping[int, int]  # first segment: how many
    started_at: datetime  # of the newest of them
    finished_at: datetime


@dataclass(frozen=True)
class Done:
    """What the finished spans of a job come to, by quality; their steps need not be looked at one by one."""

    qualities: Mapping[str, DoneQuality] = field(default_factory=dict)

    @property
    def finished_at(self) -> datetime | None:
        return max((done.finished_at for done in self.qualities.values()), default=None)

    def spans(self, quality: str) -> Mapping[int, int]:
        done = self.qualities.get(quality)
        return done.spans if done else {}


NOTHING_DONE = Done()


def latest_attempts(steps: Iterable[JobStep]) -> list[JobStep]:
    """Keep the newest attempt of each step key; the others are history."""
    newest: dict[str, JobStep] = {}
    for step in sorted(steps, key=lambda step: (step.generation, step.attempt)):
        newest[step.step_key] = step
    return list(newest.values())


def picture_job(
    job: Job, steps: Sequence[JobStep], qualities: Sequence[QualityProgressRow], done: Done = NOTHING_DONE
) -> JobPicture:
    """Derive a job's row from the newest attempts of its steps; those in `done` may be left out of them."""
    running = [step for step in steps if step.outcome is StepOutcome.RUNNING]
    # A tie goes to the newer attempt, so that the picture does not depend on the order of rows.
    held = max(running, key=lambda step: (step.claim_expires_at, step.started_at, step.step_key), default=None)
    unfinished = [s for s in steps if s.outcome is not StepOutcome.COMPLETED and s.step not in UNTIL_DONE]
    tries = max((step.tries for step in unfinished), default=1)
    attempt = min(tries, job.max_attempts)
    ended = sorted((step for step in steps if step.finished_at is not None), key=_finished)
    retrying = [step for step in ended if step.outcome is StepOutcome.FAILED and step.will_retry]
    error = None
    # With no try left this would read as the job's failure, and only the terminal activity may say that.
    if not running and retrying and attempt < job.max_attempts:
        error = retrying[-1].error_message or "A step failed and will be tried again."
    verdict = bool(ended) and ended[-1].outcome is StepOutcome.FAILED and not ended[-1].will_retry
    if verdict and done.finished_at is not None and ended[-1].finished_at is not None:
        verdict = done.finished_at <= ended[-1].finished_at  # nothing has gone well since
    return JobPicture(
        held=held,
        current_step=_phase(running),
        percent=max(job.progress_percent, min(99, int(_percent(job, steps, qualities)))),
        attempt_number=attempt,
        last_error=error,
        awaits_verdict=not running and verdict,
    )


def picture_quality(
    row: QualityProgressRow, steps: Sequence[JobStep], done: Done = NOTHING_DONE, generation: int = 0
) -> QualityPicture:
    """Derive one quality from the newest attempts that encode it; several spans add up.

    Only steps of its present generation count: what was made before it started anew is not used.
    """
    mine = [step for step in steps if encodes(step, row.quality, generation)]
    finished = done.qualities.get(row.quality)
    if not (mine or finished) or row.status in (QualityStatus.COMPLETED, QualityStatus.SKIPPED):
        return QualityPicture(row.status, row.segments_completed, row.progress_percent, row.error_message)
    # A batch that was split leaves two keys for the same span: the further one counts.
    spans = {first: (count, float(count)) for first, count in done.spans(row.quality).items()}
    for step in mine:
        segments, percent = span_progress(step, row.quality)
        before = spans.get(step.first_segment or 0, (0, 0.0))
        whole = step.segments or row.segments_total or 0
        spans[step.first_segment or 0] = (max(before[0], segments), max(before[1], percent * whole / 100))
    stored = int(_covered({first: segments for first, (segments, _) in spans.items()}))
    total = row.segments_total or 0
    if total and stored >= total:
        return QualityPicture(QualityStatus.COMPLETED, total, 100, None)
    running = any(step.outcome is StepOutcome.RUNNING for step in mine)
    last = max(mine, key=lambda step: (step.started_at, step.generation, step.attempt), default=None)
    if last is not None and finished is not None and finished.started_at > last.started_at:
        last = None  # what began after it went well
    failed = last is not None and last.outcome is StepOutcome.FAILED
    status = QualityStatus.IN_PROGRESS if running else QualityStatus.PENDING
    if last is not None and failed and not running and not last.will_retry:
        status = QualityStatus.FAILED
    made = _covered({first: part for first, (_, part) in spans.items()})
    percent = int(100 * made / total) if total else 0
    return QualityPicture(
        status=status,
        segments_completed=max(row.segments_completed, min(stored, total)),
        percent=max(row.progress_percent, min(99, percent)),
        error_message=last.error_message if last is not None and failed and not running else None,
    )


def encodes(step: JobStep, quality: str, generation: int = 0) -> bool:
    """Tell whether a step makes this generation of a quality."""
    if step.step is not StepName.TRANSCODE or quality not in step.qualities:
        return False
    return generation_in(step.step_key, quality) == generation


def counts(step: JobStep, current: Mapping[str, int]) -> bool:
    """Tell whether a step is part of what is made: not if all that it encodes has started anew since."""
    if step.step is not StepName.TRANSCODE or not step.qualities:
        return True
    return any(encodes(step, quality, current.get(quality, 0)) for quality in step.qualities)


def generations(plan: Mapping[str, Any] | None) -> dict[str, int]:
    """Say of which generation each quality, and each sound as `audio_0`, is by a job's plan as it is stored."""
    known = plan or {}
    found = {rendition["quality"]: rendition.get("generation", 0) for rendition in known.get("renditions", ())}
    return found | {f"audio_{each['track']}": each.get("generation", 0) for each in known.get("audio", ())}


def _covered(spans: Mapping[int, float]) -> float:
    """Count what spans hold together. A job that Temporal had forgotten is cut anew: old and new ones overlap."""
    covered, reach = 0.0, 0.0
    for first, length in sorted(spans.items()):
        covered += max(0.0, first + length - max(first, reach))
        reach = max(reach, first + length)
    return covered


def _finished(step: JobStep) -> tuple[float, str]:
    return (step.finished_at.timestamp() if step.finished_at else 0.0, step.step_key)


def _phase(running: Sequence[JobStep]) -> StepName | None:
    names = {step.step for step in running} - AFTER_THE_END
    if StepName.TRANSCODE in names:  # sound and picture run beside it; people wait for this
        return StepName.TRANSCODE
    return max(names, key=ORDER.__getitem__, default=None)


def _percent(job: Job, steps: Sequence[JobStep], qualities: Sequence[QualityProgressRow]) -> float:
    return sum(weight * _fraction(name, job, steps, qualities) for name, weight in WEIGHTS.items())


def _fraction(name: StepName, job: Job, steps: Sequence[JobStep], qualities: Sequence[QualityProgressRow]) -> float:
    if name is StepName.TRANSCODE:
        made = [row for row in qualities if row.status is not QualityStatus.SKIPPED]
        pixels = sum(row.width * row.height for row in made)
        return sum(row.width * row.height * row.progress_percent for row in made) / (100 * pixels) if pixels else 0.0
    mine = [step for step in steps if step.step is name]
    expected = len(mine)
    if name is StepName.AUDIO and job.plan is not None:
        expected = len(job.plan.get("audio", ()))
        if expected == 0:
            return 1.0  # a silent video has nothing to wait for
    return min(1.0, sum(step.percent for step in mine) / (100 * expected)) if expected else 0.0


def span_progress(step: JobStep, quality: str) -> tuple[int, float]:
    """Tell how many of its segments, and how many percent, a transcode step has of one quality."""
    if step.outcome is StepOutcome.COMPLETED:
        return (step.segments or 0, 100.0)
    for entry in step.progress.get("qualities", ()):
        if entry["quality"] == quality:
            return (int(entry["segments_completed"]), float(entry["percent"]))
    return (0, 0.0)
