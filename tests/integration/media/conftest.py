"""Real ffmpeg, real clips; each made once per worker process."""

import asyncio
from pathlib import Path

import pytest

from contracts.plan import Rung
from media.planning import PlanOptions
from media.tools import Toolbox, find_tools
from tests.support.clips import Clips

SMALL_LADDER = (
    Rung(name="360p", short_side=360, video_kbps=600, audio_kbps=96),
    Rung(name="240p", short_side=240, video_kbps=300, audio_kbps=64),
    Rung(name="144p", short_side=144, video_kbps=200, audio_kbps=64),
)


@pytest.fixture(scope="session")
def tools() -> Toolbox:
    return asyncio.run(find_tools())


@pytest.fixture(scope="session")
def clips(tools: Toolbox, tmp_path_factory: pytest.TempPathFactory) -> Clips:
    return Clips(tools, tmp_path_factory.mktemp("clips"))


@pytest.fixture(scope="session")
def options() -> PlanOptions:
    """One-second segments of a small ladder: three rungs and three segments out of three seconds."""
    return PlanOptions(ladder=SMALL_LADDER, segment_seconds=1, preset="veryfast")


@pytest.fixture
def odd_folder(tmp_path: Path) -> Path:
    """A folder whose name means something to shells, to ffmpeg's filters and to its file name patterns."""
    folder = tmp_path / "job1-transcode:0+3:720p,480p 100% 'quoted'"
    folder.mkdir()
    return folder
