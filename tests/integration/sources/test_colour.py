"""Whatever the matrix, range, depth and sampling of a source: 8-bit 4:2:0 BT.709 that looks the same."""

import pytest

from contracts.layout import segment_name
from media.tools import Toolbox
from tests.integration.sources.conftest import Judge
from tests.support.charts import X264, Charts, yuv
from tests.support.judging import BT709, Outcome, tags

OFF = 3  # of 255; measured 1 where the matrix stays, 2 where it changes
FFV1 = ("-c:v", "ffv1")
X265_10 = ("-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=error:crf=8", "-tag:v", "hvc1")
BUILT_FOR_10_BIT = ("zscale",)  # a build with it has an x265 of 10 bits too; the other one's has 8


def tagged_everywhere(tools: Toolbox, out: Outcome) -> bool:
    """Every segment of every rendition is 8-bit BT.709, and says so."""
    for rung in out.plan.renditions:
        found = [tags(tools, out.folder / rung.quality, segment_name(n)) for n in range(out.plan.grid.segments)]
        if set(found) != {BT709}:
            return False
    return True


SD = {"colorspace": "smpte170m", "color_trc": "smpte170m", "color_primaries": "smpte170m"}
PAL = {"colorspace": "bt470bg", "color_trc": "bt470bg", "color_primaries": "bt470bg"}
UNTAGGED = {"colorspace": "", "color_trc": "", "color_primaries": "", "range": ""}


@pytest.mark.parametrize(
    ("name", "pictures"),
    [
        ("bt601_525", yuv(matrix="smpte170m", tags=SD)),
        ("bt601_625", yuv(matrix="bt470bg", tags=PAL)),
        ("smpte240m", yuv(matrix="smpte240m", tags={"colorspace": "smpte240m"})),
        ("untagged", yuv(matrix="smpte170m", tags=UNTAGGED)),
        ("bt2020c", yuv(matrix="bt2020", tags={"colorspace": "bt2020c"})),
        ("derived", yuv(matrix="smpte170m", tags={"colorspace": "chroma-derived-nc"})),
        ("full_range", yuv(full=True)),
        ("full_range_bt601", yuv(matrix="smpte170m", full=True, tags=SD)),
    ],
)
async def test_other_matrices_and_ranges_become_bt709(
    charts: Charts, judge: Judge, tools: Toolbox, name: str, pictures: str
) -> None:
    out = await judge(charts.make(f"{name}.mp4", pictures=pictures))
    assert out.numbers == list(range(48)) and out.off() <= OFF
    assert tagged_everywhere(tools, out)


async def test_interlaced_video_of_an_unknown_matrix_is_read_too(charts: Charts, judge: Judge) -> None:
    weave = f"{yuv(matrix='smpte170m', tags={'colorspace': 'chroma-derived-nc'})},interlace=scan=tff:lowpass=off"
    coded = (*X264, "-flags", "+ildct+ilme", "-x264-params", "tff=1")
    out = await judge(charts.make("derived_fields.mp4", *coded, rate="50", pictures=weave))
    assert out.numbers == list(range(48)) and out.off() <= OFF


async def test_untagged_high_definition_is_bt709(charts: Charts, judge: Judge) -> None:
    source = charts.make("untagged_hd.mp4", size=(1280, 720), pictures=yuv(tags=UNTAGGED), numbers=range(6))
    out = await judge(source)
    assert out.facts.video.color_space in ("", "unknown")
    assert out.numbers == list(range(6)) and out.off() <= OFF


@pytest.mark.parametrize(
    ("name", "codec", "pixels"),
    [
        ("h264_10.mp4", X264, "yuv420p10le"),
        ("h264_422.mp4", X264, "yuv422p"),
        ("h264_422_10.mov", X264, "yuv422p10le"),
        ("h264_444.mp4", X264, "yuv444p"),
        ("hevc_10.mp4", X265_10, "yuv420p10le"),
        ("ffv1_444_16.mkv", FFV1, "yuv444p16le"),
    ],
)
async def test_more_bits_and_more_chroma_come_to_eight_bits(
    charts: Charts, judge: Judge, tools: Toolbox, name: str, codec: tuple[str, ...], pixels: str
) -> None:
    needs = BUILT_FOR_10_BIT if codec is X265_10 else ()
    out = await judge(charts.make(name, *codec, pictures=yuv(pixels), filters=needs))
    assert out.facts.video.pixel_format == pixels
    assert out.numbers == list(range(48)) and out.off() <= OFF
    assert tagged_everywhere(tools, out)


@pytest.mark.parametrize(
    ("name", "codec", "pixels"),
    [
        ("rgb.mkv", ("-c:v", "ffv1"), "bgr0"),
        ("rgb_planar.mkv", ("-c:v", "ffv1"), "gbrp10le"),
        ("rgb_h264.mp4", ("-c:v", "libx264rgb", "-preset", "ultrafast", "-crf", "4"), "rgb24"),
        ("rgb_raw.avi", ("-c:v", "rawvideo"), "bgr24"),
    ],
)
async def test_rgb_becomes_bt709(
    charts: Charts, judge: Judge, tools: Toolbox, name: str, codec: tuple[str, ...], pixels: str
) -> None:
    out = await judge(charts.make(name, *codec, pictures=f"format={pixels}", numbers=range(24)))
    assert out.numbers == list(range(24)) and out.off() <= OFF
    assert tagged_everywhere(tools, out)


async def test_a_matrix_that_changes_half_way_is_followed(charts: Charts, judge: Judge) -> None:
    ways = (yuv(matrix="smpte170m", tags=SD), yuv())
    parts = [
        charts.make(f"matrix{n}.h264", *X264, "-bf", "0", pictures=way, numbers=range(24 * n, 24 * n + 24))
        for n, way in enumerate(ways)
    ]
    joined = charts.folder / "two_matrices.h264"
    joined.write_bytes(b"".join(part.read_bytes() for part in parts))
    out = await judge(charts.again("two_matrices.mp4", joined, "-c", "copy", before=("-framerate", "24")))
    assert out.numbers == list(range(48)) and out.off() <= OFF
