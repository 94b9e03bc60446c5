"""A disk without room holds a video up; it costs no attempt and no video."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from temporalio.client import Client

from activities.failures import FailureInterceptor
from contracts.ids import workflow_id
from contracts.media import Rung
from contracts.queues import Pool, TaskQueue
from media.tools import find_tools
from mirror.recorder import StepRecorder
from mirror.sessions import Database
from runtime.settings import Settings
from storage.local import LocalStore
from tests.e2e.conftest import make_clip
from tests.integration.mirror.story import WORKER, job_row, register, rows_of, upload
from tests.support.eventually import eventually
from workers import room as rooms
from workers.build import Parts, build_worker
from workers.room import Room
from workflows.transcode_video import TranscodeVideo

POOLS = (Pool.ORCHESTRATE, Pool.IO, Pool.CPU)


async def test_a_full_disk_makes_a_job_wait_and_it_goes_on_when_there_is_room(
    client: Client, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rooms, "LOOK_AGAIN_S", 0.2)
    tools, store, free = await find_tools(), LocalStore(tmp_path / "storage"), [0]
    clip = tmp_path / "clip.mp4"
    make_clip(tools, clip, seconds=1, size="160x90")
    await register(database)
    video = await upload(database)
    await store.put_file(video.request.source_key, clip)

    async def left() -> int:
        return free[0]

    settings = Settings(home=tmp_path, preset="ultrafast", ladder=(_LOWEST,))
    recorder = StepRecorder(database, WORKER)
    room = Room(1 << 40, left, reserve_bytes=settings.scratch_reserve)
    parts = Parts(settings, store, database, tools, recorder, dict.fromkeys(POOLS, 2), room=room)
    recording = asyncio.create_task(recorder.run())
    async with AsyncExitStack() as running:
        for pool in POOLS:
            worker = build_worker(client, pool, parts, FailureInterceptor())
            assert worker is not None
            await running.enter_async_context(worker)
        handle = await client.start_workflow(
            TranscodeVideo.run,
            video.request,
            id=workflow_id(video.video_id, video.job_id),
            task_queue=TaskQueue.ORCHESTRATE,
        )

        async def every_encode_was_put_off() -> bool:
            query = "SELECT fields FROM job_events WHERE job_id = :id AND event = 'job.retry_later'"
            told = [row["fields"] for row in await rows_of(database, query, id=video.job_id)]
            assert all(fields["code"] == "SCRATCH_FULL" for fields in told)
            return {"transcode", "audio"} <= {fields["step"] for fields in told}

        await eventually(every_encode_was_put_off, within=30)
        assert (await job_row(database, video))["state"] not in ("failed", "retrying", "completed")
        free[0] = settings.scratch_reserve + (1 << 30)
        assert (await asyncio.wait_for(handle.result(), 120)).status == "ready"
    await recorder.close()
    recording.cancel()
    ended = await job_row(database, video)
    assert (ended["state"], ended["attempt_number"], ended["last_error"]) == ("completed", 1, None)
    outcomes = await rows_of(database, "SELECT DISTINCT outcome FROM job_steps WHERE job_id = :id", id=video.job_id)
    assert {row["outcome"] for row in outcomes} == {"completed", "partial"}


_LOWEST = Rung(name="90p", short_side=90, video_kbps=100, audio_kbps=64)
