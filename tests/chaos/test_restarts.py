"""Everything that can die does, thirty times, while twenty videos come in: each comes out once, and nothing is left.

`VLOG_CHAOS_SEED` repeats a run; `VLOG_CHAOS_KILLS` and `VLOG_CHAOS_VIDEOS` make a shorter one.
"""

import asyncio
import json
import os
import random
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from signal import Signals
from typing import Any, TypeVar

import asyncpg
import httpx
import pytest
from temporalio.client import Client, WorkflowExecutionStatus

from media.tools import Toolbox
from tests.chaos.restarts import draw
from tests.e2e.conftest import make_clip
from tests.e2e.service import QUICK, Service
from tests.support.eventually import eventually

SEED = os.environ.get("VLOG_CHAOS_SEED") or uuid.uuid4().hex[:8]
KILLS = int(os.environ.get("VLOG_CHAOS_KILLS", "30"))
VIDEOS = int(os.environ.get("VLOG_CHAOS_VIDEOS", "20"))
BETWEEN_S = (6.0, 20.0)
LIMIT_S = 25 * 60.0

VICTIMS = ("worker-1", "worker-2", "api", "temporal", "postgres")
AWAY = (OSError, httpx.HTTPError, asyncpg.PostgresError, asyncpg.InterfaceError, RuntimeError, TimeoutError)

Answer = TypeVar("Answer")


@pytest.fixture
def fragile(tmp_path: Path) -> Iterator[Service]:
    running = Service(tmp_path / "home")
    running.settings = QUICK | {
        "VLOG_LADDER": "360p=600/96,240p=300/64",
        "VLOG_MAX_RETRY_ATTEMPTS": "10",
        "VLOG_STALE_JOB_CHECK_INTERVAL": "5",
    }
    running.start(workers=2)
    try:
        yield running
    finally:
        code = running.stop()
        left = running.processes()
    assert code == 0 and left == []


async def patiently(ask: Callable[[], Awaitable[Answer]], *, within: float = 120) -> Answer:
    """Ask again while whoever answers is dead."""
    deadline = time.monotonic() + within
    while True:
        try:
            return await ask()
        except AWAY:
            if time.monotonic() > deadline:
                raise
        await asyncio.sleep(0.5)


async def upload(service: Service, clip: Path, number: int) -> dict[str, Any]:
    """Upload as a careful client does: again until it is taken, under one key."""
    key = {"Idempotency-Key": f"chaos-{SEED}-{number}"}

    async def once() -> dict[str, Any]:
        async with httpx.AsyncClient(timeout=30) as http:
            params = {"filename": clip.name, "title": f"chaos {number}"}
            answer = await http.put(f"{service.url}/api/videos", params=params, content=clip.read_bytes(), headers=key)
        if answer.status_code >= 500:
            raise TimeoutError(answer.text)
        assert answer.status_code in (200, 201), answer.text
        created: dict[str, Any] = answer.json()
        return created

    return await patiently(once)


async def upload_all(service: Service, clip: Path, over_s: float) -> list[dict[str, Any]]:
    dice, created = random.Random(SEED + "uploads"), []
    for number in range(VIDEOS):
        created.append(await upload(service, clip, number))
        await asyncio.sleep(dice.uniform(0, 2 * over_s / VIDEOS))
    return created


def all_up(service: Service) -> Callable[[], Awaitable[bool]]:
    """Ask whether everybody is back from the last blow."""

    async def is_healthy() -> bool:
        async with httpx.AsyncClient(timeout=5) as http:
            try:
                return (await http.get(f"{service.url}/api/health")).status_code == 200
            except httpx.HTTPError:
                return False

    return is_healthy


async def strike(service: Service) -> list[str]:
    """Kill children of our own `up`, by the pid it reports, and say whom."""
    struck = []
    for blow in draw(SEED, KILLS, VICTIMS, BETWEEN_S):
        await asyncio.sleep(blow.after_s)
        note = service.home / "pids" / blow.victim

        async def hit(note: Path = note, signal: Signals = blow.signal) -> bool:
            try:
                os.kill(json.loads(note.read_text())["pid"], signal)
            except (OSError, ValueError):  # it is on its way back from the last blow
                return False
            return True

        await eventually(hit, within=90)
        struck.append(f"{blow.signal.name} {blow.victim}")
    return struck


@pytest.mark.timeout(LIMIT_S + 120)
async def test_thirty_kills_cost_no_video_and_leave_nothing_behind(
    fragile: Service, tools: Toolbox, tmp_path: Path
) -> None:
    service, began = fragile, time.monotonic()
    print(f"\nVLOG_CHAOS_SEED={SEED}: {KILLS} kills, {VIDEOS} videos")
    clip = tmp_path / "clip.mp4"
    make_clip(tools, clip, seconds=10, size="640x360")
    over_s = KILLS * sum(BETWEEN_S) / 2
    struck, created = await asyncio.gather(strike(service), upload_all(service, clip, over_s * 0.8))
    print(f"{time.monotonic() - began:.0f} s: {', '.join(struck)}")

    async def all_ended() -> bool:
        try:
            rows = await service.query("SELECT status FROM videos WHERE status NOT IN ('ready', 'failed')")
        except AWAY:
            return False
        return not rows

    await eventually(all_ended, within=LIMIT_S - (time.monotonic() - began), every=2)
    await eventually(all_up(service), within=120, every=1)
    print(f"{time.monotonic() - began:.0f} s: all ended")
    await check_each_once(service, created)
    await check_mirror_equals_temporal(service)
    await check_no_orphans(service, began)
    print(f"{time.monotonic() - began:.0f} s: all checked; {await costs(service)}")


async def check_each_once(service: Service, created: list[dict[str, Any]]) -> None:
    videos = await service.query("SELECT id, status, error_message FROM videos ORDER BY id")
    assert [video["id"] for video in videos] == sorted(one["video_id"] for one in created)
    assert {video["status"] for video in videos} == {"ready"}, [dict(video) for video in videos]
    jobs = await service.query("SELECT video_id, state FROM job_states ORDER BY video_id")
    assert [(job["video_id"], job["state"]) for job in jobs] == [(video["id"], "completed") for video in videos]


async def check_mirror_equals_temporal(service: Service) -> None:
    """Each job has one workflow, which completed, and its rows say what its workflow said."""
    client = await Client.connect(service.run["temporal_address"])
    jobs = await service.query("SELECT id, video_id, workflow_id, attempt_number FROM transcoding_jobs ORDER BY id")

    async def closed() -> bool:  # a storyboard may still be on its way
        runs = [run async for run in client.list_workflows("WorkflowType = 'TranscodeVideo'")]
        return len(runs) >= len(jobs) and all(run.status is not WorkflowExecutionStatus.RUNNING for run in runs)

    await eventually(closed, within=180, every=1)
    runs = [run async for run in client.list_workflows("WorkflowType = 'TranscodeVideo'")]
    assert sorted(run.id for run in runs) == sorted(job["workflow_id"] for job in jobs)
    assert {run.status for run in runs} == {WorkflowExecutionStatus.COMPLETED}
    for job in jobs:
        said = await client.get_workflow_handle(job["workflow_id"]).result()
        rows = await service.query("SELECT quality FROM video_qualities WHERE video_id = $1", job["video_id"])
        assert sorted(row["quality"] for row in rows) == sorted(said["qualities"]) == ["240p", "360p"]
        assert said["job_id"] == job["id"] and said.get("missing", []) == []
        progress = await service.query("SELECT quality, status FROM quality_progress WHERE job_id = $1", job["id"])
        assert {(row["quality"], row["status"]) for row in progress} == {("360p", "completed"), ("240p", "completed")}
    open_steps = await service.query("SELECT job_id, step_key FROM job_steps WHERE finished_at IS NULL")
    assert open_steps == [], [dict(step) for step in open_steps]


async def check_no_orphans(service: Service, began: float) -> None:
    """Every file is a source, or belongs to a rendition that a row names; scratch is empty."""
    rows = await service.query(
        """
        SELECT prefix FROM video_qualities UNION SELECT prefix FROM audio_renditions
        UNION SELECT source_key FROM videos
        """
    )
    named = tuple(row["prefix"] for row in rows)
    slugs = {row["slug"] for row in await service.query("SELECT slug FROM videos")}

    def orphans() -> list[str]:
        files = (path.relative_to(service.storage) for path in service.storage.rglob("*") if path.is_file())
        found = []
        for path in files:
            top = path.parts[0] == "videos" and len(path.parts) == 3 and path.parts[1] in slugs
            if path.name.startswith(".") or not (top or path.as_posix().startswith(named)):
                found.append(path.as_posix())
        return found

    async def none() -> bool:
        return not orphans()

    try:  # bytes whose row was never written are removed a quarter of an hour later
        await eventually(none, within=max(60, LIMIT_S - (time.monotonic() - began)), every=2)
    except AssertionError:
        raise AssertionError(f"orphaned: {orphans()}") from None


async def costs(service: Service) -> str:
    rows = await service.query("SELECT outcome, count(*) AS steps FROM job_steps GROUP BY outcome ORDER BY outcome")
    return ", ".join(f"{row['steps']} {row['outcome']}" for row in rows)
