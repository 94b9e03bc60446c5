"""Upright, unmirrored, in its own shape: whatever the camera, the container or the pixels say."""

from pathlib import Path

import pytest

from tests.integration.sources.conftest import Judge
from tests.support import chart
from tests.support.charts import X264, Charts, with_clap, yuv

OFF = 3  # of 255: no conversion of colours takes part


async def test_a_portrait_stays_one(charts: Charts, judge: Judge) -> None:
    out = await judge(charts.make("portrait.mp4", size=(180, 320)))
    assert out.size == (180, 320) and out.corners == {chart.UPRIGHT}
    assert out.numbers == list(range(48)) and out.off() <= OFF


# Names of the corners as stored, so that the matrix beside them shows the chart upright.
_TURNED = {
    "90": ("-display_rotation", "90"),
    "180": ("-display_rotation", "180"),
    "270": ("-display_rotation", "270"),
    "mirrored": ("-display_hflip",),
    "upside_down": ("-display_vflip",),
    "90_mirrored": ("-display_rotation", "90", "-display_hflip"),
    "270_mirrored": ("-display_rotation", "270", "-display_hflip"),
}
_STORED = {
    # A matrix that turns by 90 degrees counter-clockwise undoes a clockwise turn of the chart, and so on.
    "90": ("transpose=clock", (180, 320)),
    "180": ("hflip,vflip", (320, 180)),
    "270": ("transpose=cclock", (180, 320)),
    "mirrored": ("hflip", (320, 180)),
    "upside_down": ("vflip", (320, 180)),
    "90_mirrored": ("transpose=clock_flip", (180, 320)),
    "270_mirrored": ("transpose=cclock_flip", (180, 320)),
}


@pytest.mark.parametrize("turn", _TURNED)
async def test_a_display_matrix_is_obeyed_once(charts: Charts, judge: Judge, turn: str) -> None:
    how, stored = _STORED[turn]
    lying = charts.make(f"lying_{turn}.mp4", pictures=f"{yuv()},{how}", numbers=range(24))
    out = await judge(charts.again(f"turned_{turn}.mp4", lying, "-c", "copy", before=_TURNED[turn]))
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
    # A band of white all round; only the chart in the middle is meant to be seen.
    banded = charts.make("banded.mp4", pictures=f"{yuv()},pad=360:210:24:18:white", numbers=range(24))
    source = charts.folder / "aperture.mp4"
    # Width, height and centre as fractions; the centre is told from the middle of the stored picture.
    source.write_bytes(with_clap(banded.read_bytes(), 320, 180, 24 + 160 - 180, 18 + 90 - 105))
    out = await judge(source)
    assert out.facts.video.crop == (24, 18, 16, 12)
    assert out.size == (320, 180) and out.corners == {chart.UPRIGHT}
    assert out.numbers == list(range(24)) and out.off() <= OFF


async def test_a_size_that_changes_half_way_keeps_every_picture(charts: Charts, judge: Judge) -> None:
    source = _joined(charts, "resized", size_then=(240, 136))
    out = await judge(source)
    assert out.size == (320, 180) and out.corners == {chart.UPRIGHT}
    assert out.numbers == list(range(48)) and out.off() <= OFF


async def test_a_turned_source_may_change_its_size_too(charts: Charts, judge: Judge) -> None:
    lying = _joined(charts, "resized_lying", size_then=(136, 240), size=(180, 320), how="transpose=clock")
    source = charts.again("resized_turned.mp4", lying, "-c", "copy", before=("-display_rotation", "90"))
    out = await judge(source)
    assert out.size == (320, 180) and out.corners == {chart.UPRIGHT}
    assert out.numbers == list(range(48)) and out.off() <= OFF


def _joined(
    charts: Charts, name: str, *, size_then: tuple[int, int], size: tuple[int, int] = (320, 180), how: str = "null"
) -> Path:
    """Two raw H.264 streams end to end: the second brings its own size, as a stream of a call does."""
    whole = charts.folder / f"{name}.h264"
    if not whole.exists():
        parts = []
        for index, (wide, high) in enumerate((size, size_then)):
            numbers = range(24 * index, 24 * index + 24)
            pictures = f"{yuv()},{how},scale={wide}:{high}"
            parts.append(charts.make(f"{name}{index}.h264", *X264, "-bf", "0", pictures=pictures, numbers=numbers))
        whole.write_bytes(b"".join(part.read_bytes() for part in parts))
    return charts.again(f"{name}.mp4", whole, "-c", "copy", before=("-framerate", "24"))
