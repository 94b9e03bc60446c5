"""When may people begin to watch? When the lowest rung will stay ahead of them, and its sound with it. Pure.

Of several sounds the default is enough: the others are whole films too, and are listed as they come.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from contracts.plan import TranscodePlan
from contracts.states import StepName, StepOutcome
from mirror.deriving import NOTHING_DONE, Done, encodes, span_progress
from mirror.tables import JobStep

LEAD_S = 30.0  # enough to outlast a lost worker, or a slow stretch
FASTER = 1.2  # than it plays, with a margin: speed is measured so far, not promised


def is_playable(plan: TranscodePlan, steps: Sequence[JobStep], done: Done = NOTHING_DONE) -> bool:
    """Judge by the newest attempts of a job's steps."""
    grid = plan.grid
    lowest = plan.lowest.quality
    encoding = [step for step in steps if encodes(step, lowest, plan.lowest.generation)]
    segments, speed = _lead(encoding, lowest, done.spans(lowest))
    if segments < 1:
        return False
    there_s = grid.seconds(min(segments * grid.segment_frames, grid.frames))
    if segments < grid.segments and there_s < LEAD_S and speed <= FASTER:
        return False
    # Sound that has the same lead keeps it: it is encoded many times faster than it plays.
    needed_s = min(there_s, LEAD_S)
    sounds = {step.step_key: step for step in steps if step.step is StepName.AUDIO}
    default = next((sounds.get(f"audio:{audio.track}") for audio in plan.audio if audio.default), None)
    return _is_heard(default, needed_s, grid.duration_s) or all(
        _reaches(sound := sounds.get(f"audio:{audio.track}"), needed_s, grid.duration_s)
        or (not audio.default and _is_given_up(sound))  # the video does without it
        for audio in plan.audio
    )


def _lead(steps: Sequence[JobStep], quality: str, finished: Mapping[int, int]) -> tuple[int, float]:
    """Count one quality's segments from the start without a gap, and say how fast the next ones come."""
    spans: dict[int, list[JobStep]] = defaultdict(list)
    for step in steps:
        spans[step.first_segment or 0].append(step)  # a batch that was split leaves several for one span
    there = 0
    while True:
        if there in finished:
            there += finished[there]
            continue
        here = spans.get(there)
        if not here:
            return there, 0.0
        length = max(step.segments or 0 for step in here)
        done = max(span_progress(step, quality)[0] for step in here)
        if done < length or length == 0:
            running = [step for step in here if step.outcome is StepOutcome.RUNNING]
            return there + done, max((float(step.progress.get("speed", 0.0)) for step in running), default=0.0)
        there += length


def _reaches(sound: JobStep | None, needed_s: float, duration_s: float) -> bool:
    if sound is None:
        return False
    return sound.outcome is StepOutcome.COMPLETED or sound.percent * duration_s >= 100 * needed_s


def _is_heard(sound: JobStep | None, needed_s: float, duration_s: float) -> bool:
    """Tell a sound that is there from one that has ended and perhaps gave none: then another one is the first."""
    if sound is None or not _reaches(sound, needed_s, duration_s):
        return False
    return float(sound.progress.get("percent", 0.0)) > 0


def _is_given_up(sound: JobStep | None) -> bool:
    return sound is not None and sound.outcome is StepOutcome.FAILED and not sound.will_retry
