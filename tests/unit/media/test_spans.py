"""Is the work cut so that nobody waits and nothing is cut for nothing?"""

from hypothesis import given
from hypothesis import strategies as st

from contracts.media import FrameRate
from contracts.plan import Capacity, Grid, PlannedRendition
from media.spans import MOST_AT_ONCE, MOST_SPANS, choose_lists, choose_spans, choose_window

RUNGS = tuple(
    PlannedRendition(quality=f"{side}p", width=side * 16 // 9 // 2 * 2, height=side, video_kbps=1000)
    for side in (1080, 720, 480, 360)
)


def grid(seconds: float, segment_s: float = 6) -> Grid:
    return Grid(frame_rate=FrameRate(num=30), frames=round(seconds * 30), segment_frames=round(segment_s * 30))


@given(st.integers(1, 40_000), st.integers(1, 50), st.integers(1, 200), st.floats(10, 600))
def test_spans_cover_every_segment_once_and_differ_by_one_at_most(
    frames: int, workers: int, slots: int, span_s: float
) -> None:
    whole = Grid(frame_rate=FrameRate(num=30), frames=frames, segment_frames=180)
    spans = choose_spans(whole, Capacity(workers=workers, slots=slots), span_s)
    at = 0
    for span in spans:
        assert span.first_segment == at and span.segments >= 1
        at += span.segments
    assert at == whole.segments
    lengths = {span.segments for span in spans}
    assert max(lengths) - min(lengths) <= 1


def test_a_short_video_on_a_lone_worker_stays_whole() -> None:
    assert len(choose_spans(grid(60), Capacity(workers=1, slots=2), 120)) == 1
    assert choose_lists(RUNGS, choose_spans(grid(60), Capacity(), 120), grid(60), Capacity(), share=True) == (
        ("1080p", "720p", "480p", "360p"),
    )


def test_a_second_worker_makes_it_worth_cutting() -> None:
    spans = choose_spans(grid(40, 2), Capacity(workers=2, slots=4), 120)
    assert [span.segments for span in spans] == [5, 5, 5, 5]


def test_a_long_video_fills_every_slot_and_ends_evenly() -> None:
    for slots in (2, 3, 8, 24):
        spans = choose_spans(grid(3600), Capacity(workers=2, slots=slots), 120)
        assert len(spans) % slots == 0


def test_keyframes_that_are_usual_change_nothing_and_rare_ones_are_not_cut_between() -> None:
    many = Capacity(workers=4, slots=8)
    usual = choose_spans(grid(3 * 3600), many, 120)
    assert choose_spans(grid(3 * 3600), many, 120, 10) == choose_spans(grid(3 * 3600), many, 120, 30) == usual
    assert len(choose_spans(grid(600), Capacity(workers=50, slots=100), 120, 30)) == 50
    # A call that was recorded as it came: one keyframe, or one every half an hour.
    assert len(choose_spans(grid(3 * 3600), many, 120, 3 * 3600 - 0.04)) == 1
    assert len(choose_spans(grid(3 * 3600), many, 120, 1800)) == 6


def test_what_many_videos_share_is_not_cut_for_all_of_it() -> None:
    """On a busy service nobody is idle: pieces of two segments, each decoded for itself, would only be more work."""
    alone = Capacity(workers=150, slots=300)
    busy = alone.model_copy(update={"jobs": 100})
    lists = {}
    for capacity in (alone, busy):
        spans = choose_spans(grid(240), capacity, 120)
        lists[capacity.jobs] = len(spans), len(choose_lists(RUNGS, spans, grid(240), capacity, share=True))
    assert lists == {1: (20, 4), 100: (3, 2)}
    assert choose_window(busy) == choose_window(alone), "the others will end"
    assert busy.model_copy(update={"jobs": 1000}).share == 1


def test_the_lowest_rung_of_a_long_video_runs_ahead() -> None:
    spans = choose_spans(grid(600), Capacity(), 120)
    assert choose_lists(RUNGS, spans, grid(600), Capacity(), share=True) == (("360p",), ("1080p", "720p", "480p"))


def test_idle_workers_or_a_setting_make_lists_of_one_lowest_first() -> None:
    many = Capacity(workers=10, slots=40)
    singles = (("360p",), ("480p",), ("720p",), ("1080p",))
    assert choose_lists(RUNGS, choose_spans(grid(40), many, 120), grid(40), many, share=True) == singles
    assert choose_lists(RUNGS, choose_spans(grid(600), Capacity(), 120), grid(600), Capacity(), share=False) == singles


def test_three_hours_stay_a_few_hundred_steps() -> None:
    spans = choose_spans(grid(3 * 3600), Capacity(workers=4, slots=8), 120)
    assert 80 <= len(spans) <= 120


def test_a_day_of_film_on_a_thousand_workers_stays_within_what_a_workflow_may_hold() -> None:
    """Fifty thousand events of history, two thousand steps that wait: beyond either Temporal ends the workflow."""
    assert MOST_SPANS * 6 < 50_000 / 5 and MOST_AT_ONCE <= 2000 / 4
    for many in (Capacity(), Capacity(workers=1000, slots=32_000)):
        spans = choose_spans(grid(24 * 3600, 2), many, 4)
        assert len(spans) == MOST_SPANS
        assert sum(span.segments for span in spans) == grid(24 * 3600, 2).segments
        assert choose_window(many) <= MOST_AT_ONCE
