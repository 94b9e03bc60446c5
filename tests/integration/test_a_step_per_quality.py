"""With VLOG_SHARE_DECODE=never every quality is decoded and encoded by a step of its own; the stream is the same."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from activities.failures import FailureInterceptor
from contracts.ids import workflow_id
from contracts.queues import Pool, TaskQueue
from media.streams import verify_stream
from media.tools import find_tools
from mirror.recorder import StepRecorder
from mirror.sessions import Database
from runtime.settings import Settings
from storage.local import LocalStore
from tests.integration.mirror.story import WORKER, register, rows_of, upload
from tests.replay.stories import temporal_for_stories
from tests.support.clips import Clips
from workers.build import Parts, build_worker
from workers.room import Room
from workflows.transcode_video import TranscodeVideo

POOLS = (Pool.CPU, Pool.PROBE, Pool.IO, Pool.ORCHESTRATE)
QUALITIES = ["360p", "240p", "144p"]


async def test_without_a_shared_decode_each_quality_has_its_own_step_and_all_fit_together(
    database: Database, tmp_path: Path
) -> None:
    """The real steps and the real workflow; only the processes around them are missing."""
    tools = await find_tools()
    settings = Settings(
        home=tmp_path / "home",
        share_decode="never",
        ladder="360p=600/96,240p=300/64,144p=200/64",
        segment_seconds=1,
        preset="ultrafast",
    )
    store = LocalStore(tmp_path / "storage")
    clip = Clips(tools, tmp_path / "clips").get("land.mp4")
    await register(database)
    video = await upload(database, "alone")
    await store.put_file(video.request.source_key, clip)
    recorder = StepRecorder(database, WORKER)
    room = Room(1 << 40, store.free_bytes)
    parts = Parts(settings, store, database, tools, recorder, dict.fromkeys(POOLS, 2), room=room)
    writing = asyncio.create_task(recorder.run())
    try:
        async with temporal_for_stories() as client, AsyncExitStack() as running:
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
    assert (result.status, list(result.qualities)) == ("ready", QUALITIES)

    steps = await rows_of(
        database,
        "SELECT qualities, first_segment, segments, attempt, outcome FROM job_steps"
        " WHERE job_id = :job AND step = 'transcode'",
        job=video.job_id,
    )
    assert sorted(step["qualities"] for step in steps) == sorted([quality] for quality in QUALITIES)
    assert {(s["first_segment"], s["segments"], s["attempt"], s["outcome"]) for s in steps} == {(0, 3, 1, "completed")}
    report = await verify_stream(tools, tmp_path / "storage/videos/alone/master.m3u8")
    assert [(rung.name, rung.frames) for rung in report.rungs] == [(quality, 90) for quality in QUALITIES]
    assert len({rung.boundaries_s for rung in report.rungs}) == 1
