"""The real steps and the real workflow, on a real Temporal and Postgres; only the processes around them are missing."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from temporalio.client import Client

from activities.failures import FailureInterceptor
from contracts.ids import workflow_id
from contracts.queues import Pool, TaskQueue
from contracts.steps import TranscodeResult
from media.tools import Toolbox
from mirror.recorder import StepRecorder
from mirror.sessions import Database
from mirror.writes import CreatedVideo
from runtime.settings import Settings
from storage.local import LocalStore
from tests.integration.mirror.story import WORKER, register, upload
from workers.build import Parts, build_worker
from workers.room import Room
from workflows.transcode_video import TranscodeVideo

POOLS = (Pool.CPU, Pool.PROBE, Pool.IO, Pool.ORCHESTRATE)


async def transcoded(
    client: Client, database: Database, store: LocalStore, tools: Toolbox, settings: Settings, source: Path, title: str
) -> tuple[CreatedVideo, TranscodeResult]:
    """Take a video through everything from its plan to its end."""
    await register(database)
    video = await upload(database, title)
    await store.put_file(video.request.source_key, source)
    recorder = StepRecorder(database, WORKER)
    room = Room(1 << 40, store.free_bytes)
    parts = Parts(settings, store, database, tools, recorder, dict.fromkeys(POOLS, 2), room=room)
    writing = asyncio.create_task(recorder.run())
    try:
        async with AsyncExitStack() as running:
            for pool in POOLS:
                worker = build_worker(client, pool, parts, FailureInterceptor())
                assert worker is not None
                await running.enter_async_context(worker)
            result = await client.execute_workflow(
                TranscodeVideo.run,
                video.request,
                id=workflow_id(video.video_id, video.job_id),
                task_queue=TaskQueue.ORCHESTRATE,
            )
    finally:
        await recorder.close()
        await writing
    return video, result
