"""One video, several spans, two workers: indistinguishable from a single encode, also when one of them dies."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from media.tools import Toolbox
from tests.e2e.conftest import make_clip
from tests.e2e.joined import RATE, check_joined, check_redone, encoding, redone, spans
from tests.e2e.service import QUICK, Service
from tests.e2e.test_crashes import pids
from tests.support.counting import CountingFfmpeg
from tests.support.eventually import eventually

SECONDS = 40
QUALITIES = ("360p", "240p", "180p")
SPANS = [(0, 5), (5, 5), (10, 5), (15, 5)]


@pytest.fixture(scope="module")
def source(tools: Toolbox, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("source") / "forty.mp4"
    make_clip(tools, path, seconds=SECONDS, size="640x360")
    return path


@pytest.fixture(scope="module")
def counter(tools: Toolbox, tmp_path_factory: pytest.TempPathFactory) -> CountingFfmpeg:
    # Paced: a worker dies in the middle of its spans on any machine.
    return CountingFfmpeg(tmp_path_factory.mktemp("counting"), tools.pick(), pace=1.5)


@pytest.fixture(scope="module")
def two_workers(counter: CountingFfmpeg, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    running = Service(tmp_path_factory.mktemp("two") / "home")
    running.settings = QUICK | {
        "VLOG_LADDER": "360p=600/96,240p=300/64,180p=200/64",
        # A worker that is only slow must not be taken for dead: what two of them encode is counted twice.
        "VLOG_STEP_HEARTBEAT_TIMEOUT_SECONDS": "10",
        "VLOG_FFMPEG": str(counter.program),
        "VLOG_CPU_SLOTS": "2",
    }
    running.start(workers=2)
    try:
        yield running
    finally:
        code = running.stop()
        left = running.processes()
    assert code == 0 and left == []


async def test_spans_over_two_workers_join_without_a_seam(
    two_workers: Service, counter: CountingFfmpeg, tools: Toolbox, source: Path
) -> None:
    created = await two_workers.upload(source, title="joined")
    video = await two_workers.ended(created["video_id"], within=180)
    assert video["status"] == "ready"
    made = await spans(two_workers, created["job_id"])
    assert [(first, count) for first, count, _, _ in made] == SPANS
    assert len({worker for _, _, _, worker in made}) == 2
    await check_joined(two_workers, tools, created["slug"], SECONDS * RATE)
    steps = await redone(two_workers, counter, created["job_id"], SECONDS * RATE)
    assert len(steps) == len(SPANS) * len(QUALITIES)
    assert {step.frames for step in steps} == {0}


async def test_a_killed_worker_costs_at_most_two_segments_per_quality_and_step(
    two_workers: Service, counter: CountingFfmpeg, tools: Toolbox, source: Path
) -> None:
    created = await two_workers.upload(source, title="killed")
    renditions = two_workers.storage / "videos" / created["slug"] / "r1"
    doomed: list[int] = []

    def stored(first: int) -> int:
        """Count a span's segments that are there in every quality."""
        names = [f"seg_{first + place:05d}.m4s" for place in range(5)]
        return sum(all((renditions / quality / name).exists() for quality in QUALITIES) for name in names)

    async def well_begun() -> bool:
        # All that one worker encodes has more behind it than the kill may cost: starting it anew would show.
        for worker, firsts in encoding(created["job_id"], pids(two_workers, "workers")).items():
            if firsts and all(3 <= stored(first) < 5 for first in firsts):
                doomed.append(worker)
        return bool(doomed)

    await eventually(well_begun, within=120, every=0.05)
    os.kill(doomed[0], signal.SIGKILL)
    video = await two_workers.ended(created["video_id"], within=180)
    assert video["status"] == "ready"
    await check_joined(two_workers, tools, created["slug"], SECONDS * RATE)
    steps = await redone(two_workers, counter, created["job_id"], SECONDS * RATE)
    print("encoded again:", [(step.quality, step.first_segment, step.frames) for step in steps if step.lost])
    assert any(step.lost for step in steps), "the kill met no running step"
    check_redone(steps)
