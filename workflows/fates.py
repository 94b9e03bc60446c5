"""Each quality has its own fate. Which of them decide the job's is said here. Pure."""

from collections.abc import Mapping

from temporalio.exceptions import ApplicationError

from contracts.end_steps import VerifiedRenditions
from contracts.plan import PlannedAudio, TranscodePlan
from contracts.states import JobKind
from contracts.steps import MissingRendition, StepFailure, TranscodeRequest

SOUND = "audio"  # the default track, in VLOG_CRITICAL_QUALITIES


def critical_qualities(job: TranscodeRequest, plan: TranscodePlan) -> tuple[str, ...]:
    """Name the qualities without which the job fails; an alternative codec never is one."""
    rungs = [rendition for rendition in plan.renditions if not rendition.is_alternative]
    if job.critical:
        return tuple(rung.quality for rung in rungs if rung.quality in job.critical)
    if job.kind is JobKind.RETRANSCODE:  # a stream that is whole is not given up for one with a rung less
        return tuple(rung.quality for rung in rungs)
    lowest = min(rungs, key=lambda rung: rung.width * rung.height, default=None)
    # What was published before keeps the video alive: then a rung that is made good may fail again.
    return (lowest.quality,) if lowest is not None and not job.keep else ()


def is_critical_sound(job: TranscodeRequest, track: PlannedAudio) -> bool:
    return track.default and (SOUND in job.critical if job.critical else not job.keep)


def lost_picture(
    job: TranscodeRequest, whole: VerifiedRenditions, missing: Mapping[str, MissingRendition]
) -> MissingRendition | None:
    """Name a rung that was lost where none is left: whatever is critical, nobody can watch sound alone."""
    if whole.video or any(_is_picture(name) for name in job.keep):
        return None
    return next((each for name, each in missing.items() if _is_picture(name)), None)


def _is_picture(name: str) -> bool:
    return not name.startswith(f"{SOUND}_")


def missing(name: str, failure: StepFailure) -> MissingRendition:
    return MissingRendition(name=name, code=failure.code, sentence=failure.sentence)


def lost(missing: MissingRendition) -> ApplicationError:
    """Say that the job fails for want of this one."""
    return ApplicationError(missing.sentence, type=missing.code, non_retryable=True)
