"""Temporal and the mirror come apart; nobody has to do anything about it."""

import json
import os
import signal
from pathlib import Path

from temporalio.client import Client

from tests.e2e.service import Service
from tests.e2e.test_crashes import encoding_worker, long_clip
from tests.support.eventually import eventually

__all__ = ["long_clip"]


async def events(service: Service, job_id: int) -> list[str]:
    return [event["event"] for event in await service.get(f"/api/jobs/{job_id}/events")]


async def test_a_workflow_terminated_by_hand_ends_its_video_with_a_sentence(
    slow_service: Service, long_clip: Path
) -> None:
    service = slow_service
    created = await service.upload(long_clip, title="terminated")
    await encoding_worker(service, created["slug"])
    client = await Client.connect(service.run["temporal_address"])
    name = f"video-{created['video_id']}-job-{created['job_id']}"
    await client.get_workflow_handle(name).terminate(reason="wrong button")
    video = await service.ended(created["video_id"], within=120)
    assert (video["status"], video["error_code"]) == ("failed", "TERMINATED")
    assert "wrong button" in video["error_message"]
    assert (await service.get(f"/api/jobs/{created['job_id']}"))["state"] == "failed"
    kept = list((service.storage / "videos" / created["slug"] / "r1" / "360p").glob("seg_*.m4s"))
    assert len(kept) >= 2, "what was encoded is there for a retry"


async def test_a_lost_temporal_database_costs_no_video(slow_service: Service, long_clip: Path) -> None:
    service = slow_service
    created = await service.upload(long_clip, title="forgotten")
    await encoding_worker(service, created["slug"])
    note = json.loads((service.home / "pids" / "temporal").read_text())
    for path in (service.home / "temporal").glob("temporal.db*"):
        path.unlink()
    os.kill(note["pid"], signal.SIGKILL)
    video = await service.ended(created["video_id"], within=140)
    assert video["status"] == "ready", video
    assert "job.restarted" in await events(service, created["job_id"])
    [generations] = await service.query(
        "SELECT min(generation) AS first, max(generation) AS last FROM job_steps WHERE job_id = $1",
        created["job_id"],
    )
    assert generations["first"] == 0 and generations["last"] >= 1, "the forgotten run is history, the new one is newer"

    async def swept_again() -> bool:
        client = await Client.connect(service.run["temporal_address"])
        return bool([run async for run in client.list_workflows("WorkflowType = 'Housekeeping'", limit=1)])

    await eventually(swept_again, within=60)
