"""Something dies in the middle; the video comes out all the same."""

import asyncio
import contextlib
import os
import signal
from pathlib import Path

import pytest

from media.tools import Toolbox
from tests.e2e.conftest import make_clip
from tests.e2e.service import Service
from tests.support.eventually import eventually


def pids(service: Service, word: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                arguments = (entry / "cmdline").read_bytes().split(b"\0")
                home = str(service.home).encode()
                ours = home in (entry / "environ").read_bytes() or any(home in argument for argument in arguments)
                if ours and word.encode() in arguments and b"-m" in arguments:
                    found.append(int(entry.name))
    return found


async def encoding_worker(service: Service, slug: str) -> int:
    """Wait until a few segments are stored, and name the process that makes them."""
    rendition = service.storage / "videos" / slug / "r1" / "360p"

    async def begun() -> bool:
        return len(list(rendition.glob("seg_*.m4s"))) >= 2

    await eventually(begun, within=60, every=0.05)
    [worker] = pids(service, "workers")
    return worker


@pytest.fixture(scope="module")
def long_clip(tools: Toolbox, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten seconds of work, as the encoders are paced, on two qualities."""
    path = tmp_path_factory.mktemp("long") / "long.mp4"
    make_clip(tools, path, seconds=20, size="854x480")
    return path


async def attempts(service: Service, job_id: int) -> list[tuple[int, int, str]]:
    """Read both attempts; how a step ended may be told a moment after its job's own end."""
    found: list[tuple[int, int, str]] = []

    async def told() -> bool:
        rows = await service.query(
            "SELECT generation, attempt, outcome FROM job_steps WHERE job_id = $1 AND step = 'transcode' ORDER BY 1, 2",
            job_id,
        )
        found[:] = [(row["generation"], row["attempt"], row["outcome"]) for row in rows]
        return len(found) >= 2 and all(outcome != "running" for _, _, outcome in found)

    await eventually(told, within=20)
    return found


async def test_a_killed_worker_costs_a_retry_not_the_video(slow_service: Service, long_clip: Path) -> None:
    service = slow_service
    created = await service.upload(long_clip, title="crash")
    os.kill(await encoding_worker(service, created["slug"]), signal.SIGKILL)
    await asyncio.sleep(0.5)
    assert not [p for p in service.processes() if "ffmpeg" in p.split(" ")[0]], "an encoder outlived its worker"
    video = await service.ended(created["video_id"], within=90)
    assert video["status"] == "ready"
    assert await attempts(service, created["job_id"]) == [(0, 1, "lost"), (0, 2, "completed")]


async def test_a_drained_worker_costs_no_attempt(slow_service: Service, long_clip: Path) -> None:
    service = slow_service
    created = await service.upload(long_clip, title="drain")
    os.kill(await encoding_worker(service, created["slug"]), signal.SIGTERM)
    video = await service.ended(created["video_id"], within=90)
    assert video["status"] == "ready"
    assert await attempts(service, created["job_id"]) == [(0, 1, "partial"), (1, 1, "completed")]
    [job] = await service.query("SELECT attempt_number FROM transcoding_jobs WHERE id = $1", created["job_id"])
    assert job["attempt_number"] == 1
    events = await service.get(f"/api/jobs/{created['job_id']}/events")
    assert "aborted:shutdown" in [event["event"] for event in events]
