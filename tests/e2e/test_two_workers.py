"""One video, several spans, two workers: indistinguishable from a single encode, also when one of them dies."""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from media.tools import Toolbox
from tests.e2e.conftest import make_clip
from tests.e2e.joined import RATE, SEGMENT_FRAMES, check_joined, encoded_frames, spans
from tests.e2e.service import QUICK, Service
from tests.e2e.test_crashes import pids

SECONDS = 40


@pytest.fixture(scope="module")
def source(tools: Toolbox, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("source") / "forty.mp4"
    make_clip(tools, path, seconds=SECONDS, size="640x360")
    return path


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    running = Service(tmp_path_factory.mktemp("two") / "home")
    running.settings = QUICK | {
        "VLOG_LADDER": "360p=600/96,240p=300/64,180p=200/64",
        # Slow enough that a worker dies in the middle of its spans.
        "VLOG_PRESET": "medium",
    }
    running.start(workers=2)
    try:
        yield running
    finally:
        code = running.stop()
        left = running.processes()
    assert code == 0 and left == []


async def test_spans_over_two_workers_join_without_a_seam(two_workers: Service, tools: Toolbox, source: Path) -> None:
    created = await two_workers.upload(source, title="joined")
    video = await two_workers.ended(created["video_id"])
    assert video["status"] == "ready"
    made = await spans(two_workers, created["job_id"])
    assert [(first, count) for first, count, _, _ in made] == [(0, 5), (5, 5), (10, 5), (15, 5)]
    assert len({worker for _, _, _, worker in made}) == 2
    await check_joined(two_workers, tools, created["slug"], SECONDS * RATE)


async def test_a_killed_worker_costs_at_most_two_segments_per_quality_and_step(
    two_workers: Service, tools: Toolbox, source: Path
) -> None:
    created = await two_workers.upload(source, title="killed")
    rendition = two_workers.storage / "videos" / created["slug"] / "r1" / "360p"
    for _ in range(1200):
        # Each of the four spans has more behind it than the kill may cost: starting one anew would show.
        if len(list(rendition.glob("seg_*.m4s"))) >= 12:
            break
        await asyncio.sleep(0.02)
    os.kill(pids(two_workers, "workers")[0], signal.SIGKILL)
    video = await two_workers.ended(created["video_id"], within=120)
    assert video["status"] == "ready"
    made = await spans(two_workers, created["job_id"])
    retried = [span for span in made if span[2] > 1]
    assert retried, "the kill met no running step"
    await check_joined(two_workers, tools, created["slug"], SECONDS * RATE)
    frames, lost = await encoded_frames(two_workers, created["job_id"])
    assert lost >= 1
    assert frames <= SECONDS * RATE + lost * 2 * SEGMENT_FRAMES
