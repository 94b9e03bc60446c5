"""A disk without room or away, or a worker without memory, holds a video up; it costs no attempt and no video."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from temporalio.client import Client

from activities import outage
from activities.failures import FailureInterceptor
from contracts.errors import StorageAway, WorkerFull
from contracts.ids import workflow_id
from contracts.plan import Rung
from contracts.queues import Pool, TaskQueue
from media.tools import find_tools
from media.weights import Need
from mirror.newness import newness
from mirror.recorder import StepRecorder
from mirror.sessions import Database
from mirror.writes import CreatedVideo
from runtime.settings import Settings
from storage.local import LocalStore
from tests.e2e.conftest import make_clip
from tests.integration.mirror.story import WORKER, job_row, register, rows_of, upload
from tests.support.eventually import eventually
from workers import room as rooms
from workers.build import Parts, build_worker
from workers.room import Room
from workflows.transcode_video import TranscodeVideo

POOLS = (Pool.ORCHESTRATE, Pool.IO, Pool.PROBE, Pool.CPU)
LOWEST = Rung(name="90p", short_side=90, video_kbps=100, audio_kbps=64)


@dataclass(frozen=True)
class Waiting:
    """A job whose encodes find no room, whatever they are."""

    database: Database
    video: CreatedVideo
    result: Callable[[], Awaitable[str]]

    async def is_put_off(self, code: str) -> None:
        """Wait until sound and picture have both been told to come later, and see that the job bears it."""

        async def told() -> bool:
            query = "SELECT fields FROM job_events WHERE job_id = :id AND event = 'job.retry_later'"
            found = [row["fields"] for row in await rows_of(self.database, query, id=self.video.job_id)]
            assert all(fields["code"] == code for fields in found)
            return {"transcode", "audio"} <= {fields["step"] for fields in found}

        await eventually(told, within=30)
        assert (await job_row(self.database, self.video))["state"] not in ("failed", "retrying", "completed")

    async def ends_well(self) -> None:
        assert await self.result() == "ready"

        async def is_told() -> bool:
            return bool((await job_row(self.database, self.video))["state"] == "completed")

        await eventually(is_told, within=10)
        row = await job_row(self.database, self.video)
        assert (row["attempt_number"], row["last_error"]) == (1, None)
        query = "SELECT DISTINCT outcome FROM job_steps WHERE job_id = :id AND outcome IS NOT NULL"
        outcomes = await rows_of(self.database, query, id=self.video.job_id)
        assert {row["outcome"] for row in outcomes} == {"completed", "partial"}


@asynccontextmanager
async def waiting(client: Client, database: Database, folder: Path, room: Room) -> AsyncIterator[Waiting]:
    """Serve all pools as a worker does, in this room, and begin a video."""
    tools, store = await find_tools(), LocalStore(folder / "storage", is_new=await newness(database))
    (store.root / "uploads").mkdir(parents=True)
    make_clip(tools, folder / "clip.mp4", seconds=1, size="160x90")
    await register(database)
    video = await upload(database)
    await store.put_file(video.request.source_key, folder / "clip.mp4")
    recorder = StepRecorder(database, WORKER)
    settings = Settings(home=folder, preset="ultrafast", ladder=(LOWEST,))
    parts = Parts(settings, store, database, tools, recorder, dict.fromkeys(POOLS, 3), room=room)
    recording = asyncio.create_task(recorder.run())
    async with AsyncExitStack() as running:
        for pool in POOLS:
            failures = FailureInterceptor()
            failures.storage = store.check
            worker = build_worker(client, pool, parts, failures)
            assert worker is not None
            await running.enter_async_context(worker)
        handle = await client.start_workflow(
            TranscodeVideo.run,
            video.request,
            id=workflow_id(video.video_id, video.job_id),
            task_queue=TaskQueue.ORCHESTRATE,
        )

        async def result() -> str:
            return (await asyncio.wait_for(handle.result(), 120)).status

        yield Waiting(database, video, result)
    await recorder.close()
    recording.cancel()


async def test_a_full_disk_makes_a_job_wait_and_it_goes_on_when_there_is_room(
    own_client: Client, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rooms, "LOOK_AGAIN_S", 0.2)
    free = 0

    async def left() -> int:
        return free

    async with waiting(own_client, database, tmp_path, Room(1 << 40, left, reserve_bytes=1 << 30)) as job:
        await job.is_put_off("SCRATCH_FULL")
        free = 2 << 30
        await job.ends_well()


async def test_a_worker_without_memory_hands_steps_back_until_there_is_some(
    own_client: Client, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rooms, "PATIENCE_S", 0.01)
    monkeypatch.setattr(WorkerFull, "retry_after_s", 0.2)
    room = Room(1, LocalStore(tmp_path).free_bytes)  # every step is larger than all of it, and runs alone
    async with AsyncExitStack() as taken:
        await taken.enter_async_context(room.given(Need(memory_bytes=1), {}))
        async with waiting(own_client, database, tmp_path, room) as job:
            await job.is_put_off("WORKER_FULL")
            await taken.aclose()
            await job.ends_well()


async def test_a_storage_that_goes_away_makes_a_job_wait_and_it_goes_on_when_it_is_back(
    own_client: Client, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its disk is no longer mounted when sound and picture begin: what they miss is not gone for good."""
    monkeypatch.setattr(outage, "KEEP_S", 0.1)
    monkeypatch.setattr(outage, "LOOK_EVERY_S", 0.05)
    monkeypatch.setattr(StorageAway, "retry_after_s", 0.2)
    mounted, elsewhere, gone = tmp_path / "storage", tmp_path / "elsewhere", False

    async def left() -> int:
        nonlocal gone
        if not gone:
            gone = True
            mounted.rename(elsewhere)
            mounted.mkdir()
        return 1 << 40

    async with waiting(own_client, database, tmp_path, Room(1 << 40, left)) as job:
        await job.is_put_off("STORAGE_AWAY")
        assert list(mounted.iterdir()) == [], "nothing is put where the disk will be"
        mounted.rmdir()
        elsewhere.rename(mounted)
        await job.ends_well()
