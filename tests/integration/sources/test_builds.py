"""Each ffmpeg that is found gives the same pictures: a plan may pin any of them."""

from media.tools import Toolbox
from tests.integration.sources.conftest import Judge
from tests.support import chart
from tests.support.charts import Charts, yuv
from tests.support.kinds import apertured, interlaced, resized, turned, variable

OFF = 3  # of 255


async def test_every_build_gives_the_same_pictures(charts: Charts, judge: Judge, tools: Toolbox) -> None:
    standard = {"colorspace": "smpte170m", "color_trc": "smpte170m", "color_primaries": "smpte170m"}
    gaps = [n / 30 for n in range(30) if n % 7 != 3]
    sources = {
        "turned and mirrored": (turned(charts, "90_mirrored")[0], list(range(24))),
        "cropped": (apertured(charts), list(range(24))),
        "resized": (resized(charts, "resized", size_then=(240, 136)), list(range(48))),
        "interlaced": (interlaced(charts, "bottom"), list(range(100))),
        "variable": (variable(charts, "some_gaps.mp4", gaps), list(range(len(gaps)))),
        "BT.601": (charts.make("bt601.mp4", pictures=yuv(matrix="smpte170m", tags=standard)), list(range(48))),
    }
    for build in tools.tools:
        for kind, (source, numbers) in sources.items():
            out = await judge(source, tools=Toolbox((build,)))
            assert list(dict.fromkeys(out.numbers)) == numbers, (build.version, kind)
            assert out.corners == {chart.UPRIGHT} and out.off() <= OFF, (build.version, kind)
