"""A long video, two workers, five kills at moments nobody chose: it comes out whole, and little is made twice."""

import asyncio
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from media.tools import Toolbox
from tests.e2e.conftest import make_clip
from tests.e2e.joined import RATE, SEGMENT_FRAMES, check_joined, check_redone, redone
from tests.e2e.service import OFTEN_KEPT, QUICK, Service
from tests.e2e.test_crashes import pids
from tests.support.counting import CountingFfmpeg
from tests.support.eventually import eventually

SECONDS = 600
KILLS = 5


@pytest.fixture
def counter(tools: Toolbox, tmp_path: Path) -> CountingFfmpeg:
    return CountingFfmpeg(tmp_path / "counting", tools.pick())


@pytest.fixture
def two_workers(counter: CountingFfmpeg, tmp_path: Path) -> Iterator[Service]:
    running = Service(tmp_path / "home")
    running.settings = (
        QUICK
        | OFTEN_KEPT
        | {
            "VLOG_LADDER": "360p=600/96,240p=300/64,180p=200/64",
            # A worker that is only slow must not be taken for dead: what two of them encode is counted twice.
            "VLOG_STEP_HEARTBEAT_TIMEOUT_SECONDS": "10",
            "VLOG_PRESET": "veryfast",
            "VLOG_MAX_RETRY_ATTEMPTS": "10",
            "VLOG_FFMPEG": str(counter.program),
        }
    )
    running.start(workers=2)
    try:
        yield running
    finally:
        code = running.stop()
        left = running.processes()
    assert code == 0 and left == []


@pytest.mark.timeout(1500)
async def test_five_random_kills_cost_seconds_and_no_frame(
    two_workers: Service, counter: CountingFfmpeg, tools: Toolbox, tmp_path: Path
) -> None:
    service = two_workers
    source = tmp_path / "long.mp4"
    make_clip(tools, source, seconds=SECONDS, size="640x360")
    dice = random.Random(os.environ.get("VLOG_CHAOS_SEED", "7"))
    created = await service.upload(source, title="long")
    renditions = service.storage / "videos" / created["slug"] / "r1"

    async def encoding_begun() -> bool:
        return any(renditions.glob("*p/seg_*.m4s"))

    await eventually(encoding_begun, within=180)
    killed = 0
    while killed < KILLS:
        await asyncio.sleep(dice.uniform(4, 10))
        video = await service.get(f"/api/videos/{created['video_id']}")
        assert video["status"] != "ready", f"it was done after {killed} kills: make the source longer"
        workers = pids(service, "workers")
        if workers:
            os.kill(dice.choice(workers), signal.SIGKILL)
            killed += 1
    video = await service.ended(created["video_id"], within=900)
    assert video["status"] == "ready", video
    await check_joined(service, tools, created["slug"], SECONDS * RATE)
    steps = await redone(service, counter, created["job_id"], SECONDS * RATE)
    lost = [step for step in steps if step.lost]
    assert lost, "no kill met a running step"
    worst = max(step.frames / step.lost / SEGMENT_FRAMES for step in lost)
    again, all_frames = sum(step.frames for step in steps), SECONDS * RATE * len({step.quality for step in steps})
    print(
        f"{killed} kills met {sum(step.lost for step in lost)} running steps, counted per quality;"
        f" {again} of {all_frames} pictures were encoded again, at most {worst:.2f} segments per quality, step and kill"
    )
    check_redone(steps)
