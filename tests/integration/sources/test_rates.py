"""Every picture once, in order, at its own rate: constant, variable, interlaced, too fast, too slow."""

from fractions import Fraction

import pytest

from tests.integration.sources.conftest import Judge
from tests.support import chart
from tests.support.charts import X264, X264_B, Charts, yuv
from tests.support.kinds import interlaced, variable

OFF = 3  # of 255


@pytest.mark.parametrize("rate", ["24000/1001", "30000/1001", "60000/1001", "25", "50", "15"])
async def test_a_constant_rate_is_never_rounded(charts: Charts, judge: Judge, rate: str) -> None:
    out = await judge(charts.make(f"rate{rate.replace('/', '_')}.mp4", rate=rate, numbers=range(60)))
    assert out.plan.grid.frame_rate.fraction == Fraction(rate)
    assert out.numbers == list(range(60)) and out.off() <= OFF


@pytest.mark.parametrize(
    ("rate", "becomes", "numbers", "container"),
    [
        ("120", "60", range(0, 120, 2), "mp4"),
        ("100", "50", range(0, 100, 2), "mp4"),
        ("120000/1001", "60000/1001", range(0, 120, 2), "mp4"),
        ("120", "60", range(0, 120, 2), "mkv"),  # its clock counts milliseconds
    ],
)
async def test_more_than_sixty_a_second_are_thinned_evenly(
    charts: Charts, judge: Judge, rate: str, becomes: str, numbers: range, container: str
) -> None:
    source = charts.make(f"fast{rate.replace('/', '_')}.{container}", rate=rate, numbers=range(2 * len(numbers)))
    out = await judge(source)
    assert out.plan.grid.frame_rate.fraction == Fraction(becomes)
    assert out.numbers == list(numbers)
    assert "left out evenly" in out.note


@pytest.mark.parametrize("first", ["top", "bottom"])
async def test_each_field_of_interlaced_video_becomes_a_picture(charts: Charts, judge: Judge, first: str) -> None:
    out = await judge(interlaced(charts, first))
    assert out.facts.video.field_order == {"top": "tt", "bottom": "bb"}[first]
    assert out.plan.grid.frame_rate.fraction == 50
    assert out.numbers == list(range(100)) and out.corners == {chart.UPRIGHT} and out.off() <= OFF
    assert "one picture of each field" in out.note


@pytest.mark.parametrize(
    ("name", "codec", "pixels"),
    [
        ("bottom_first.ts", ("-c:v", "mpeg2video", "-q:v", "2", "-bf", "2", "-g", "12"), "yuv420p"),
        ("bottom_first.mpg", ("-c:v", "mpeg2video", "-q:v", "2", "-bf", "2", "-g", "12"), "yuv420p"),
        ("bottom_first.mov", ("-c:v", "prores_ks", "-profile:v", "3"), "yuv422p10le"),
        ("bottom_first.mkv", (*X264_B, "-x264-params", "bff=1"), "yuv420p"),
    ],
)
async def test_broadcast_and_studio_files_are_deinterlaced_too(
    charts: Charts, judge: Judge, name: str, codec: tuple[str, ...], pixels: str
) -> None:
    weave = f"{yuv(pixels)},interlace=scan=bff:lowpass=off,setfield=bff"
    coded = (*codec, "-flags", "+ildct+ilme")
    out = await judge(charts.make(name, *coded, rate="50", numbers=range(60), pictures=weave))
    assert out.plan.grid.frame_rate.fraction == 50
    assert out.numbers == list(range(60)) and out.off() <= OFF


async def test_a_span_of_interlaced_video_begins_at_its_own_field(charts: Charts, judge: Judge) -> None:
    out = await judge(interlaced(charts, "top"), first_segment=1)
    assert out.numbers == list(range(50, 100))


async def test_a_span_begins_with_the_picture_that_is_shown_there_also_in_a_gap_of_a_variable_rate(
    charts: Charts, judge: Judge
) -> None:
    # Nothing new from 1.6 to 2.3 and from 2.7 to 3.2 s: the seams at 2 and 3 s lie in the middle of it.
    seconds = [n / 30 for n in range(120) if not (48 <= n < 69 or 81 <= n < 96)]
    source = variable(charts, "seams.mp4", seconds, group=8)
    whole = await judge(source)
    assert whole.facts.video.variable_rate and whole.plan.grid.segments == 4
    for segment in (2, 3):
        part = await judge(source, first_segment=segment)
        assert part.numbers == whole.numbers[segment * whole.plan.grid.segment_frames :]


async def test_a_last_segment_of_one_picture_is_a_span_like_any_other(charts: Charts, judge: Judge) -> None:
    source = charts.make("one_over.mp4", *X264_B, rate="30000/1001", numbers=range(91))
    for segment in (0, 2, 3):
        out = await judge(source, first_segment=segment)
        assert (out.plan.grid.segment_frames, out.plan.grid.segments) == (30, 4)
        assert out.numbers == list(range(30 * segment, 91))


async def test_a_span_before_the_first_keyframe_of_what_was_recorded_halfway_is_a_span_too(
    charts: Charts, judge: Judge
) -> None:
    # A call, or a camera, whose recording begins behind a keyframe: nothing can be decoded until the next one.
    call = charts.make("call.mkv", *X264, "-bf", "0", "-g", "60", rate="25", numbers=range(90))
    source = charts.again("halfway.mkv", call, "-ss", "0.52", "-c", "copy", "-copyinkf")
    whole = await judge(source)
    late = round(float(whole.facts.video.first_keyframe_s) * 25)
    assert late > 25 and whole.numbers == [60] * late + list(range(60, 90))
    for segment in (1, 2):  # the first keyframe lies in the middle of the one, and a second before the other
        part = await judge(source, first_segment=segment)
        assert part.numbers == whole.numbers[segment * 25 :]


async def test_whole_pictures_in_an_interlaced_stream_stay_whole(charts: Charts, judge: Judge) -> None:
    """A broadcast goes from the studio to a film: from then on each picture says that it is whole."""
    coded = [*X264, "-bf", "0", "-flags", "+ildct+ilme", "-x264-params", "tff=1"]
    weave = f"{yuv()},interlace=scan=tff:lowpass=off"
    studio = charts.make("studio.h264", *coded, rate="50", numbers=range(50), pictures=weave)
    film = charts.make("film.h264", *X264, "-bf", "0", rate="25", numbers=range(50, 75))
    joined = charts.folder / "studio_and_film.h264"
    joined.write_bytes(studio.read_bytes() + film.read_bytes())
    out = await judge(charts.again("studio_and_film.mp4", joined, "-c", "copy", before=("-framerate", "25")))
    assert out.numbers == [*range(50), *(number for number in range(50, 75) for _ in range(2))]


@pytest.mark.parametrize(
    ("name", "seconds", "becomes"),
    [
        # A phone: thirty a second, some of them missing.
        ("gaps", [n / 30 for n in range(60) if n % 7 != 3], "30"),
        # A screen recorder: nothing for half a second, then sixty a second.
        ("bursts", [n / 60 for n in range(120) if n < 30 or n >= 60], "60"),
        # Two films in one: 24 a second, then 25.
        ("two_rates", [n / 24 for n in range(24)] + [1 + n / 25 for n in range(25)], "25"),
        # Fifteen a second with a hole: its own rate, not the next usual one.
        ("slow_gap", [n / 15 for n in range(30) if n != 11], "15"),
    ],
)
async def test_a_variable_rate_loses_no_picture(
    charts: Charts, judge: Judge, name: str, seconds: list[float], becomes: str
) -> None:
    out = await judge(variable(charts, f"{name}.mp4", seconds))
    assert out.facts.video.variable_rate
    assert out.plan.grid.frame_rate.fraction == Fraction(becomes)
    assert "variable frame rate" in out.note
    _in_their_time(out.numbers, seconds, Fraction(becomes))


async def test_a_clock_that_jitters_is_still_a_constant_rate(charts: Charts, judge: Judge) -> None:
    # Each picture up to 8 ms early or late, as cameras of phones write them.
    seconds = [max(0, n / 30 + (n * 7 % 9 - 4) / 500) for n in range(60)]
    out = await judge(variable(charts, "jitter.mp4", seconds, last_ms=33))
    assert out.plan.grid.frame_rate.fraction == 30
    assert out.numbers == list(range(60))


async def test_pictures_too_short_to_be_seen_are_left_out_and_counted(charts: Charts, judge: Judge) -> None:
    # Every fifth is followed by another after 2 ms: no screen shows both.
    seconds = sorted([n / 25 for n in range(50)] + [n / 25 + 0.002 for n in range(0, 50, 5)])
    out = await judge(variable(charts, "crowded.mp4", seconds))
    assert out.facts.video.crowded == 10 and "10 pictures that are shown too shortly" in out.note
    assert len(set(out.numbers)) == 50 and out.numbers == sorted(out.numbers, key=lambda number: number or 0)


def _in_their_time(numbers: list[int | None], seconds: list[float], rate: Fraction) -> None:
    """Each picture is there, in order, and none is shown more than half a tick from its time."""
    assert list(dict.fromkeys(numbers)) == list(range(len(seconds)))
    for number, second in enumerate(seconds):
        assert abs(numbers.index(number) / rate - second) <= Fraction(1, 2) / rate + Fraction(1, 1000)


@pytest.mark.parametrize("name", ["still.mp4", "still.mkv"])
async def test_a_still_picture_stands_for_its_seconds(charts: Charts, judge: Judge, name: str) -> None:
    out = await judge(charts.make(name, rate="1/3", numbers=[5]))
    assert out.numbers == [5] * out.plan.grid.frames
    assert out.plan.grid.duration_s == pytest.approx(3, abs=0.1)
    assert out.plan.grid.frame_rate.fraction >= 10 and out.off() <= OFF


async def test_a_slide_show_changes_at_its_times(charts: Charts, judge: Judge) -> None:
    out = await judge(charts.make("slides.mp4", rate="1", numbers=[1, 2, 3]))
    rate = out.plan.grid.frame_rate.fraction
    assert out.numbers == [1] * int(rate) + [2] * int(rate) + [3] * int(rate)
    assert "repeated evenly" in out.note


@pytest.mark.parametrize("count", [1, 2, 7])
async def test_a_video_of_a_few_pictures_has_just_those(charts: Charts, judge: Judge, count: int) -> None:
    out = await judge(charts.make(f"few{count}.mp4", rate="25", numbers=range(count)))
    assert out.numbers == list(range(count)) and out.off() <= OFF


async def test_one_interlaced_picture_is_two_fields(charts: Charts, judge: Judge) -> None:
    coded = [*X264, "-flags", "+ildct+ilme", "-x264-params", "tff=1"]
    weave = f"{yuv()},interlace=scan=tff:lowpass=off"
    out = await judge(charts.make("one_interlaced.mp4", *coded, rate="50", numbers=[3, 3], pictures=weave))
    assert out.numbers == [3] * out.plan.grid.frames
