"""HDR10 and HLG, by patches computed from BT.2100: the same light in SDR, highlights bent to fit; tags that say SDR."""

from collections.abc import Callable

import pytest

from contracts.plan import ToneMap
from media.tools import Toolbox
from tests.integration.sources.conftest import Judge
from tests.integration.sources.test_colour import BUILT_FOR_10_BIT, X265_10, tagged_everywhere
from tests.support import bt2100, chart
from tests.support.charts import Charts, yuv

OFF = 3  # of 255, for all that SDR can show: under 0.7 of paper white and inside BT.709's colours
PAPER_WHITE = (235, 245)  # where paper white comes out: bright, with room above it
# Greys, muted colours as of skin, leaves and sky, paper white (203 cd/m²), the brightest (1000 cd/m²).
PQ = ((70,) * 3, (100,) * 3, (120,) * 3, (132, 122, 116), (110, 122, 108), (100, 106, 124), (148,) * 3, (192,) * 3)
HLG = ((60,) * 3, (100,) * 3, (150,) * 3, (165, 145, 130), (110, 150, 112), (100, 118, 150), (191,) * 3, (255,) * 3)
_KINDS: dict[str, tuple[str, tuple[chart.Colour, ...], Callable[[chart.Colour], chart.Colour]]] = {
    "hdr10": ("smpte2084", PQ, bt2100.pq_nits),
    "hlg": ("arib-std-b67", HLG, bt2100.hlg_nits),
}


def _build_with(tools: Toolbox, way: ToneMap) -> Toolbox:
    """All builds, or only those that cannot do it by zscale."""
    if way is ToneMap.ZSCALE:
        return tools
    return Toolbox(tuple(tool for tool in tools.tools if "zscale" not in tool.filters))


@pytest.mark.parametrize("way", [ToneMap.ZSCALE, ToneMap.TABLES])
@pytest.mark.parametrize("kind", _KINDS)
async def test_hdr_becomes_sdr_of_the_same_light(
    charts: Charts, judge: Judge, tools: Toolbox, kind: str, way: ToneMap
) -> None:
    transfer, patches, nits = _KINDS[kind]
    wide = {"colorspace": "bt2020nc", "color_trc": transfer, "color_primaries": "bt2020"}
    pictures = yuv("yuv420p10le", matrix="bt2020", tags=wide)
    source = charts.make(f"{kind}.mp4", *X265_10, pictures=pictures, patches=patches, filters=BUILT_FOR_10_BIT)
    out = await judge(source, tools=_build_with(tools, way))
    assert out.facts.video.color_transfer == transfer
    assert out.plan.encoding.tone_map is way
    assert ("with zscale" if way is ToneMap.ZSCALE else "by tables, without zscale") in out.note
    assert out.numbers == list(range(48))
    meant = [bt2100.sdr(nits(patch)) for patch in patches]
    assert [fits for _, fits in meant] == [True] * 6 + [False] * 2
    for picture in out.largest:
        for seen, (colour, fits) in zip(picture.patches, meant, strict=True):
            assert not fits or chart.distance(seen, colour) <= OFF
        paper, brightest = picture.patches[6:]
        assert all(PAPER_WHITE[0] <= value <= PAPER_WHITE[1] for value in paper)
        assert min(brightest) >= 252
    assert tagged_everywhere(tools, out)


@pytest.mark.parametrize("way", [ToneMap.ZSCALE, ToneMap.TABLES])
async def test_hdr_that_is_said_to_be_of_constant_luminance_is_hdr10(
    charts: Charts, judge: Judge, tools: Toolbox, way: ToneMap
) -> None:
    """Nobody makes it; whoever writes it has picked the wrong line of a list."""
    said = {"colorspace": "bt2020c", "color_trc": "smpte2084", "color_primaries": "bt2020"}
    pictures = yuv("yuv420p10le", matrix="bt2020", tags=said)
    source = charts.make("constant.mp4", *X265_10, pictures=pictures, patches=PQ, filters=BUILT_FOR_10_BIT)
    out = await judge(source, tools=_build_with(tools, way))
    assert out.facts.video.color_space == "bt2020c" and out.plan.encoding.tone_map is way
    assert out.numbers == list(range(48))
    meant = [bt2100.sdr(bt2100.pq_nits(patch))[0] for patch in PQ[:6]]
    assert max(chart.distance(*pair) for pair in zip(out.largest[0].patches, meant, strict=False)) <= OFF


async def test_wide_sdr_colours_are_brought_to_bt709(charts: Charts, judge: Judge, tools: Toolbox) -> None:
    wide = {"colorspace": "bt2020nc", "color_trc": "bt709", "color_primaries": "bt2020"}
    patches = (
        *((value,) * 3 for value in (40, 90, 140, 200)),
        (170, 140, 120),
        (120, 150, 110),
        (100, 115, 160),
        (230,) * 3,
    )
    source = charts.make("wide.mp4", pictures=yuv("yuv420p10le", matrix="bt2020", tags=wide), patches=patches)
    out = await judge(source)
    assert "brought to those of BT.709" in out.note
    assert out.numbers == list(range(48))
    assert out.off([bt2100.narrowed(patch) for patch in patches]) <= OFF
    assert tagged_everywhere(tools, out)
