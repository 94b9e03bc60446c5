"""The picture that stands for a video is upright, whole and in its colours too."""

import subprocess
from pathlib import Path

import pytest

from media.thumbnails import take_thumbnail
from media.tools import Toolbox
from tests.support import chart
from tests.support.charts import Charts, yuv
from tests.support.encoding import prepare
from tests.support.judging import OPTIONS
from tests.support.kinds import apertured, interlaced, turned

OFF = 5  # of 255: JPEG is another lossy step


@pytest.mark.parametrize("kind", ["turned", "cropped", "interlaced", "full range", "plain"])
async def test_a_thumbnail_shows_what_the_video_shows(
    charts: Charts, tools: Toolbox, tmp_path: Path, kind: str
) -> None:
    source = {
        "turned": lambda: turned(charts, "270_mirrored")[0],
        "cropped": lambda: apertured(charts),
        "interlaced": lambda: interlaced(charts, "top"),
        "full range": lambda: charts.make("full_range.mp4", pictures=yuv(full=True)),
        "plain": lambda: charts.make("portrait.mp4", size=(180, 320)),
    }[kind]()
    work = await prepare(tools, source, OPTIONS)
    taken = await take_thumbnail(tools.pick(build=work.plan.ffmpeg), source, tmp_path, work.thumbnail())
    size = (180, 320) if kind == "plain" else (320, 180)
    seen = _read(tools, taken.path, *size)
    assert seen.names == chart.UPRIGHT
    assert seen.number is not None and seen.off() <= OFF


def _read(tools: Toolbox, picture: Path, width: int, height: int) -> chart.Picture:
    """Read a JPEG, which is BT.601 in full range, as the chart wants it."""
    to_709 = "in_color_matrix=bt601:in_range=full:out_color_matrix=bt709:out_range=limited"
    argv = [str(tools.pick().ffmpeg), "-v", "error", "-i", str(picture)]
    argv += ["-vf", f"scale={to_709}:flags=accurate_rnd+full_chroma_int,format=yuv420p", "-f", "rawvideo", "pipe:1"]
    planes = subprocess.run(argv, check=True, capture_output=True, timeout=60).stdout
    assert len(planes) == width * height * 3 // 2
    return next(chart.read(planes, width, height))
