"""A service whose only machine with encoders reaches nothing but the API: an upload becomes ready all the same."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from activities.failures import FailureInterceptor
from contracts.queues import Pool
from media.streams import verify_stream
from media.tools import find_tools
from mirror.recorder import StepRecorder
from runtime.settings import Settings
from storage.local import LocalStore
from tests.integration.api.remote_worker import working
from tests.integration.api.running import Api, serving
from tests.integration.api.workers import register
from tests.integration.mirror.story import WORKER
from tests.replay.stories import temporal_for_stories
from tests.support.clips import Clips
from tests.support.eventually import eventually
from workers.build import Parts, build_worker
from workers.room import Room

LADDER = "180p=300/64"


async def test_only_a_remote_worker_looks_at_it_and_encodes_it(database_url: str, tmp_path: Path) -> None:
    tools = await find_tools()
    clip = Clips(tools, tmp_path / "clips").get("land.mp4")
    settings = Settings(home=tmp_path / "home", ladder=LADDER, segment_seconds=1, preset="ultrafast")
    root = tmp_path / "storage"
    async with temporal_for_stories() as client, AsyncExitStack() as running:
        address = client.service_client.config.target_host
        api: Api = await running.enter_async_context(
            serving(database_url, root, temporal_address=address, max_streams=50)
        )
        store, recorder = LocalStore(root), StepRecorder(api.database, WORKER)
        writing = asyncio.create_task(recorder.run())
        near = (Pool.ORCHESTRATE, Pool.IO)
        room = Room(1 << 40, store.free_bytes)
        parts = Parts(settings, store, api.database, tools, recorder, dict.fromkeys(near, 2), room=room)
        for pool in near:
            worker = build_worker(client, pool, parts, FailureInterceptor())
            assert worker is not None
            await running.enter_async_context(worker)
        # Its own settings would refuse every source: what a source may have is the service's to say.
        far = await register(api, "far")
        await running.enter_async_context(working(api, far, tmp_path / "far", tools, max_streams=1))

        created = (await api.http.put("/api/videos?filename=land.mp4", content=clip.read_bytes())).json()

        async def is_ready() -> bool:
            video = (await api.http.get(f"/api/videos/{created['video_id']}")).json()
            assert video["status"] != "failed", video
            return bool(video["status"] == "ready")

        await eventually(is_ready, within=60)
        await recorder.close()
        await writing
        rows = await api.rows(
            "SELECT step, worker_name FROM job_steps WHERE job_id = :job AND step <> 'storyboard'",
            job=created["job_id"],
        )
    who: dict[str, set[str]] = {}
    for row in rows:
        who.setdefault(row["worker_name"], set()).add(row["step"])
    assert who["far"] == {"probe", "thumbnail", "audio", "transcode"}
    assert who[WORKER.worker_name] == {"plan", "verify", "master_playlist", "publish", "finalize"}
    report = await verify_stream(tools, root / "videos" / created["slug"] / "master.m3u8")
    assert [(rung.name, rung.frames) for rung in report.rungs] == [("180p", 90)]
