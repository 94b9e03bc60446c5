"""Upright, unmirrored, in its own shape: whatever the camera, the container or the pixels say."""

import pytest

from media.tools import Toolbox
from tests.integration.sources.conftest import Judge
from tests.support import chart
from tests.support.charts import Charts, yuv
from tests.support.kinds import MATRICES, apertured, resized, resized_fields, turned
from tests.support.missing import missing

OFF = 3  # of 255: no conversion of colours takes part


async def test_a_portrait_stays_one(charts: Charts, judge: Judge) -> None:
    out = await judge(charts.make("portrait.mp4", size=(180, 320)))
    assert out.size == (180, 320) and out.corners == {chart.UPRIGHT}
    assert out.numbers == list(range(48)) and out.off() <= OFF


@pytest.mark.parametrize("turn", MATRICES)
async def test_a_display_matrix_is_obeyed_once(charts: Charts, judge: Judge, turn: str) -> None:
    source, stored = turned(charts, turn)
    out = await judge(source)
    assert (out.facts.video.width, out.facts.video.height) == stored
    assert out.size == (320, 180) and out.corners == {chart.UPRIGHT}, out.facts.video
    assert out.numbers == list(range(24)) and out.off() <= OFF


@pytest.mark.parametrize(("size", "becomes"), [((641, 361), (320, 180)), ((121, 81), (120, 80))])
async def test_odd_sizes_become_even_ones(
    charts: Charts, judge: Judge, size: tuple[int, int], becomes: tuple[int, int]
) -> None:
    # 4:4:4, for halved chroma cannot have an odd size.
    source = charts.make(f"odd{size[0]}.mp4", size=size, pictures=yuv("yuv444p"), numbers=range(24))
    out = await judge(source)
    assert (out.facts.video.width, out.facts.video.height) == size
    assert out.size == becomes and out.corners == {chart.UPRIGHT}
    assert out.numbers == list(range(24)) and out.off() <= OFF


@pytest.mark.parametrize(
    ("aspect", "size", "becomes"), [("16/11", (240, 192), (328, 180)), ("8/9", (360, 200), (288, 180))]
)
async def test_anamorphic_pixels_become_square(
    charts: Charts, judge: Judge, aspect: str, size: tuple[int, int], becomes: tuple[int, int]
) -> None:
    name = f"anamorphic{size[0]}.mp4"
    out = await judge(charts.make(name, size=size, pictures=f"{yuv()},setsar={aspect}", numbers=range(24)))
    assert out.size == becomes and out.corners == {chart.UPRIGHT}
    assert out.numbers == list(range(24)) and out.off() <= OFF


async def test_what_a_clean_aperture_hides_is_not_shown(charts: Charts, judge: Judge) -> None:
    out = await judge(apertured(charts))
    assert out.facts.video.crop == (24, 18, 16, 12)
    assert out.size == (320, 180) and out.corners == {chart.UPRIGHT}
    assert out.numbers == list(range(24)) and out.off() <= OFF


async def test_a_size_that_changes_half_way_keeps_every_picture(charts: Charts, judge: Judge) -> None:
    source = resized(charts, "resized", size_then=(240, 136))
    out = await judge(source)
    assert out.size == (320, 180) and out.corners == {chart.UPRIGHT}
    assert out.numbers == list(range(48)) and out.off() <= OFF


async def test_a_turned_source_may_change_its_size_too(charts: Charts, judge: Judge) -> None:
    lying = resized(charts, "resized_lying", size_then=(136, 240), size=(180, 320), how="transpose=clock")
    source = charts.again("resized_turned.mp4", lying, "-c", "copy", before=("-display_rotation", "90"))
    out = await judge(source)
    assert out.size == (320, 180) and out.corners == {chart.UPRIGHT}
    assert out.numbers == list(range(48)) and out.off() <= OFF


@pytest.mark.parametrize("build", range(2))
async def test_interlaced_video_may_change_its_size(charts: Charts, judge: Judge, tools: Toolbox, build: int) -> None:
    if build >= len(tools.tools):
        missing("a second ffmpeg")
    out = await judge(resized_fields(charts), tools=Toolbox(tools.tools[build : build + 1]))
    assert out.size == (320, 180) and out.plan.grid.frame_rate.fraction == 50
    # At the seam the fields of two sizes meet; nothing else may suffer.
    numbers = out.numbers
    assert len(numbers) == 100
    assert [number for at, number in enumerate(numbers) if number != at and not 48 <= at < 52] == []
    assert {picture.names for picture in out.largest[52:]} == {chart.UPRIGHT}
