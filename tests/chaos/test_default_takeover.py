"""With every setting at its default: a killed worker's step is running again elsewhere within 45 seconds."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from media.tools import Toolbox
from tests.e2e.conftest import make_clip
from tests.e2e.service import Service
from tests.e2e.victim import VICTIM, attempts, encoding_victim
from tests.support.counting import CountingFfmpeg


@pytest.fixture
def service(tools: Toolbox, tmp_path: Path) -> Iterator[Service]:
    paced = CountingFfmpeg(tmp_path / "paced", tools.pick(), pace=0.5)
    running = Service(tmp_path / "home")
    # What is set here makes the clip short and the encoder slow; nothing that decides when a worker is given up.
    running.settings = {
        "VLOG_SEGMENT_SECONDS": "2",
        "VLOG_LADDER": "180p=200/64",
        "VLOG_CPU_SLOTS": "1",
        "VLOG_FFMPEG": str(paced.program),
    }
    running.start()
    try:
        yield running
    finally:
        code = running.stop()
        left = running.processes()
    assert code == 0 and left == []


@pytest.mark.timeout(300)
async def test_a_killed_workers_step_runs_again_within_45_seconds(
    service: Service, tools: Toolbox, tmp_path: Path
) -> None:
    source = tmp_path / "twelve.mp4"
    make_clip(tools, source, seconds=12, size="320x180")
    async with encoding_victim(service, source, "by default") as held:
        held.process.kill()
        killed_at = datetime.now(UTC)
        video = await service.ended(held.video_id, within=150)
    assert video["status"] == "ready"
    first, second = await attempts(service, held)
    assert (first["outcome"], first["worker_name"], second["attempt"]) == ("lost", VICTIM, 2)
    took = second["started_at"] - killed_at
    print("running again after", took)
    assert took < timedelta(seconds=45)
