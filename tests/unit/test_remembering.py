"""When an attempt's news are due: at once, twice a second, or in time for its claim; by what a person could see."""

import math
from datetime import UTC, datetime

import pytest

from contracts.ids import JobId, VideoId
from contracts.states import StepName, StepOutcome
from contracts.steps import QualityProgress, StepProgress
from mirror.claims import StepClaim
from mirror.remembering import THROTTLE_S, Remembered
from mirror.writes_steps import StepEnd

WRITTEN_AT = 1000.0
TIMEOUT_S = 30.0
SOON, LATER = WRITTEN_AT + THROTTLE_S, WRITTEN_AT + TIMEOUT_S / 3
CLAIM = StepClaim(
    job_id=JobId(1),
    video_id=VideoId(1),
    step=StepName.TRANSCODE,
    step_key="transcode:0+4",
    generation=0,
    attempt=1,
    started_at=datetime.now(UTC),
    heartbeat_timeout_s=TIMEOUT_S,
)


def progress(percent: float, *, of_quality: float = 10.0, segments: int = 1, frames: int = 0) -> StepProgress:
    each = QualityProgress(quality="360p", segments_total=4, segments_completed=segments, percent=of_quality)
    return StepProgress(percent=percent, frames=frames, qualities=(each,))


def remembered(told: StepProgress | None) -> Remembered:
    """An attempt whose news were written at 10 %, and which has beaten once more since."""
    entry = Remembered(CLAIM, WRITTEN_AT, written_at=WRITTEN_AT, written_beat_at=WRITTEN_AT, urgent=False)
    entry.written_progress = progress(10.0)
    entry.progress, entry.beat_at = told, WRITTEN_AT + 0.1
    return entry


@pytest.mark.parametrize(
    ("told", "due_at"),
    [
        (progress(10.0, frames=99), LATER),  # frames are not shown
        (progress(10.9, of_quality=10.9), LATER),
        (progress(11.0), SOON),
        (progress(10.0, of_quality=11.0), SOON),
        (progress(10.0, segments=2), SOON),  # of a long video a segment is less than a percent
    ],
)
def test_a_percent_or_a_segment_is_written_within_half_a_second_and_less_waits_for_the_claim(
    told: StepProgress, due_at: float
) -> None:
    assert (THROTTLE_S, remembered(told).due_at()) == (0.5, due_at)


def test_without_a_beat_there_is_nothing_to_write_and_an_end_waits_for_nobody() -> None:
    entry = remembered(progress(10.0))
    entry.beat_at = entry.written_beat_at
    assert entry.due_at() == math.inf
    entry.end, entry.urgent = StepEnd(StepOutcome.COMPLETED), True
    assert entry.due_at() == -math.inf
