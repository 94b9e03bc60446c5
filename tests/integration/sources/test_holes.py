"""A span whose first picture cannot be decoded from the nearest keyframe on, and an end that cannot be at all."""

from pathlib import Path

import pytest

from activities.transcode import _read_through
from contracts.errors import OutputIncomplete, StorageUnavailable
from media.tools import Toolbox
from tests.integration.sources.conftest import Judge
from tests.support.charts import X264, X264_B, Charts
from tests.support.crafted import without_packets
from tests.support.judging import judge_step
from tests.support.kinds import variable
from tests.support.wrapping import wrapped


def slides(charts: Charts) -> Path:
    """Nothing new from 3 to 6 s, when a keyframe is shown; with B-frames it is decoded three seconds before."""
    seconds = [n / 15 for n in range(45)] + [6 + n / 15 for n in range(15)]
    return variable(charts, "slides_b.mp4", seconds, group=45, coded=X264_B)


def holed(charts: Charts, name: str, count: int, group: int, from_s: float, to_s: float) -> Path:
    """Ten pictures a second, of which some are noise."""
    codec = (*X264, "-bf", "0", "-g", str(group), "-sc_threshold", "0")
    sound = charts.make(f"sound_{name}", *codec, rate="10", numbers=range(count))
    return without_packets(charts.tools, sound, charts.folder / name, from_s, to_s)


async def test_a_span_may_begin_in_a_long_still_before_a_keyframe(charts: Charts, judge: Judge) -> None:
    source = slides(charts)
    whole = await judge(source)
    assert whole.facts.video.keyframe_lag_s > 2.9 and whole.plan.grid.segments == 7
    for segment in (4, 5):
        part = await judge(source, first_segment=segment)
        assert part.numbers == whole.numbers[segment * whole.plan.grid.segment_frames :]


async def test_a_seek_that_lands_behind_the_wish_is_made_good_within_the_attempt(
    tools: Toolbox, charts: Charts, judge: Judge, tmp_path: Path
) -> None:
    source = slides(charts)
    whole = await judge(source)
    part = await judge_step(tools, source, tmp_path / "step", first_segment=5, keyframe_lag_s=0.0)
    assert part.numbers == whole.numbers[5 * whole.plan.grid.segment_frames :]


# From 16 s back: the keyframe of 15 s is noise, one of 4 s is not; without that either, all of the source is read.
@pytest.mark.parametrize("from_s", [13.0, 1.0])
async def test_a_span_may_begin_where_nothing_can_be_decoded(
    tools: Toolbox, charts: Charts, judge: Judge, tmp_path: Path, from_s: float
) -> None:
    source = holed(charts, f"hole{from_s:.0f}.mp4", 200, 10, from_s, 17.0)
    last = round(from_s * 10) - 1
    part = await judge_step(tools, source, tmp_path / "step", first_segment=16, keyframe_gap_s=1.0)
    assert part.numbers == [last] * 10 + list(range(170, 200))


async def test_a_span_that_an_ffmpeg_calls_damaged_is_not_the_whole_video(
    tools: Toolbox, charts: Charts, tmp_path: Path
) -> None:
    refusing = """case " $* " in *" -ss "*) echo 'Cannot determine format of input 0:0' >&2; exit 69 ;; esac"""
    choosy = Toolbox((wrapped(tools.pick(), tmp_path / "choosy", f'{refusing}\nexec "$real" "$@"'),))
    source = charts.make("for_the_choosy.mp4", *X264, rate="10", numbers=range(40))
    out = await judge_step(choosy, source, tmp_path / "step", first_segment=2)
    assert out.numbers == list(range(20, 40))


async def test_an_end_that_cannot_be_decoded_is_the_last_picture_standing(
    tools: Toolbox, charts: Charts, tmp_path: Path
) -> None:
    source = holed(charts, "no_end.mp4", 75, 25, 5.0, 9.0)
    for segment in (0, 6):
        out = await judge_step(tools, source, tmp_path / f"step{segment}", first_segment=segment)
        assert out.numbers == ([*range(50)] + [49] * 25)[segment * 10 :]


async def test_more_than_a_file_may_lack_is_not_made_up(tools: Toolbox, charts: Charts, tmp_path: Path) -> None:
    source = holed(charts, "half_an_end.mp4", 75, 30, 3.0, 9.0)
    with pytest.raises(OutputIncomplete, match=r"pictures instead of|ffmpeg ended after"):
        await judge_step(tools, source, tmp_path / "step")


async def test_what_cannot_be_read_is_not_taken_for_an_end(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    whole.write_bytes(bytes(100))
    await _read_through(whole)
    with pytest.raises(StorageUnavailable):
        await _read_through(tmp_path)
