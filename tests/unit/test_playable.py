"""When people may begin to watch follows from a job's steps alone."""

from typing import Any

import pytest

from contracts.media import FrameRate
from contracts.plan import Grid, PlannedAudio, PlannedRendition, Span, TranscodePlan
from contracts.states import StepName, StepOutcome
from mirror.playable import is_playable
from mirror.tables import JobStep

RUNNING, COMPLETED = StepOutcome.RUNNING, StepOutcome.COMPLETED


def plan(seconds: int = 120, tracks: int = 1) -> TranscodePlan:
    grid = Grid(frame_rate=FrameRate(num=25), frames=seconds * 25, segment_frames=150)
    return TranscodePlan(
        grid=grid,
        renditions=(
            PlannedRendition(quality="720p", width=1280, height=720, video_kbps=2500),
            PlannedRendition(quality="360p", width=640, height=360, video_kbps=600),
        ),
        audio=tuple(
            PlannedAudio(track=track, stream=track + 1, kbps=96, default=track == 0) for track in range(tracks)
        ),
        spans=(Span(first_segment=0, segments=grid.segments),),
    )


def span(first: int, segments: int, done: int, outcome: StepOutcome = RUNNING, **given: Any) -> JobStep:
    """A step of both qualities; the large one is further than the small one."""
    speed = given.pop("speed", 0.5)
    told = [
        {"quality": "720p", "segments_completed": segments, "percent": 100},
        {"quality": "360p", "segments_completed": done, "percent": 100 * done / segments},
    ]
    plain = {"qualities": ["720p", "360p"], "progress": {"speed": speed, "qualities": told}, "step_key": f"{first}"}
    return JobStep(
        step=StepName.TRANSCODE, outcome=outcome, first_segment=first, segments=segments, **{**plain, **given}
    )


def sound(percent: float, outcome: StepOutcome = RUNNING, track: int = 0) -> JobStep:
    told = {"percent": percent} if percent else {}
    return JobStep(step=StepName.AUDIO, step_key=f"audio:{track}", outcome=outcome, percent=percent, progress=told)


HEARD = sound(100, COMPLETED)


@pytest.mark.parametrize(("segments", "playable"), [(0, False), (4, False), (5, True), (20, True)])
def test_a_lead_of_thirty_seconds_is_enough_however_slow(segments: int, playable: bool) -> None:
    assert is_playable(plan(), [span(0, 20, segments), HEARD]) is playable


@pytest.mark.parametrize(("segments", "speed", "playable"), [(1, 1.3, True), (1, 1.2, False), (0, 9.0, False)])
def test_one_segment_is_enough_when_it_runs_faster_than_it_plays(segments: int, speed: float, playable: bool) -> None:
    assert is_playable(plan(), [span(0, 20, segments, speed=speed), HEARD]) is playable


def test_a_whole_short_video_needs_no_lead() -> None:
    assert is_playable(plan(8), [span(0, 2, 2, COMPLETED), HEARD])
    assert not is_playable(plan(8), [span(0, 2, 1), HEARD])


def test_spans_count_from_the_start_without_a_gap() -> None:
    later = span(4, 4, 4, COMPLETED, speed=9.0)
    assert not is_playable(plan(), [later, HEARD])
    assert not is_playable(plan(), [span(0, 4, 2), later, HEARD])
    assert is_playable(plan(), [span(0, 4, 4, COMPLETED), later, HEARD])
    assert is_playable(plan(), [span(0, 4, 4, COMPLETED), span(4, 4, 1), HEARD])
    assert not is_playable(plan(), [span(0, 4, 4, COMPLETED), span(8, 4, 4, COMPLETED), HEARD])


def test_only_the_speed_where_it_is_needed_counts() -> None:
    fast = span(4, 4, 1, speed=9.0)
    assert not is_playable(plan(), [span(0, 4, 1), fast, HEARD])
    assert is_playable(plan(), [span(0, 4, 4, COMPLETED), fast, HEARD])
    assert not is_playable(plan(), [span(0, 4, 1, StepOutcome.FAILED, speed=9.0), HEARD])


def test_only_the_lowest_rung_decides() -> None:
    assert not is_playable(plan(), [span(0, 20, 20, qualities=["720p"]), HEARD])


def test_a_batch_that_was_split_counts_its_better_part() -> None:
    batch = span(0, 20, 3, StepOutcome.FAILED)
    assert is_playable(plan(), [batch, span(0, 20, 5, step_key="alone", qualities=["360p"]), HEARD])


@pytest.mark.parametrize(
    ("sounds", "playable"),
    [
        ([], False),
        ([sound(24)], False),
        ([sound(25)], True),  # thirty of a hundred and twenty seconds
        ([sound(0, COMPLETED)], True),  # it gave no sound
    ],
)
def test_the_sound_must_have_the_same_lead(sounds: list[JobStep], playable: bool) -> None:
    assert is_playable(plan(), [span(0, 20, 10), *sounds]) is playable


def test_the_default_track_is_enough_and_a_silent_video_waits_for_none() -> None:
    begun = span(0, 20, 10)
    assert is_playable(plan(tracks=2), [begun, HEARD])
    assert is_playable(plan(tracks=2), [begun, sound(25), sound(0, track=1)])
    assert not is_playable(plan(tracks=2), [begun, sound(24), sound(100, COMPLETED, track=1)])
    assert is_playable(plan(tracks=0), [begun])


def test_where_the_default_may_have_given_no_sound_the_others_are_waited_for() -> None:
    begun, silent = span(0, 20, 10), sound(0, COMPLETED)
    assert not is_playable(plan(tracks=2), [begun, silent])
    assert is_playable(plan(tracks=2), [begun, silent, sound(30, track=1)])
    failed = sound(10, StepOutcome.FAILED, track=1)
    assert is_playable(plan(tracks=2), [begun, silent, failed])
    again = sound(10, StepOutcome.FAILED, track=1)
    again.will_retry = True
    assert not is_playable(plan(tracks=2), [begun, silent, again])
    assert not is_playable(plan(tracks=2), [begun, sound(10, StepOutcome.FAILED), sound(100, COMPLETED, track=1)])


def test_a_lowest_rung_that_started_anew_is_counted_anew() -> None:
    anew = plan().model_copy(
        update={"renditions": tuple(r.model_copy(update={"generation": 1}) for r in plan().renditions)}
    )
    old = span(0, 20, 20, COMPLETED, step_key="transcode:0+20:720p,360p")
    assert is_playable(plan(), [old, HEARD])
    assert not is_playable(anew, [old, HEARD])
    assert is_playable(anew, [old, span(0, 20, 5, step_key="transcode:0+20:720p.1,360p.1"), HEARD])
