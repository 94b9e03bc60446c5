"""What the API says of its neighbours, and how it answers while one of them is away."""

import asyncio
import shutil
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from api.health import queue_depth
from contracts.states import StepName
from mirror.claims import WorkerRegistration
from mirror.migrate import migrate
from mirror.writes_workers import register_worker
from tests.integration.api.claiming import step
from tests.integration.api.running import Api, serving
from tests.integration.mirror import story
from tests.support.eventually import eventually
from tests.support.postgres import PostgresServer


async def test_with_everybody_there_it_is_healthy_and_counts(api: Api) -> None:
    left = await queue_depth(api.temporal)  # in the queue, by tests that share this Temporal
    answer = await api.http.get("/api/health")
    assert answer.status_code == 200, answer.text
    health = answer.json()
    assert health["status"] == "healthy"
    assert health["postgres"]["ok"] and health["temporal"]["ok"] and health["storage"]["ok"]
    assert (health["active_workers"], health["pending_jobs"], health["queue_depth"]) == (0, 0, left)

    async def waits() -> bool:
        return bool((await api.http.get("/api/health")).json()["queue_depth"] == left + 1)

    async with step(api):
        await eventually(waits, within=10)


COUNTED = {
    "": 1,
    "status = 'offline'": 0,
    "status = 'disabled'": 0,
    "last_heartbeat = now() - interval '301 seconds'": 0,
    """quarantined_at = now(), pools_aside = '["gpu"]'""": 1,
    """quarantined_at = now(), pools_aside = '["cpu", "gpu"]'""": 0,
}


async def test_a_worker_is_active_while_it_is_heard_of_and_has_not_set_all_its_work_aside(lonely_api: Api) -> None:
    about = WorkerRegistration("us", "us", capabilities={"pools": ["orchestrate", "cpu", "gpu"]})
    for changed, active in COUNTED.items():
        async with lonely_api.database.write() as s:
            await register_worker(s, about)
        await lonely_api.change("UPDATE workers SET status = 'idle', quarantined_at = NULL, pools_aside = '[]'")
        if changed:
            await lonely_api.change(f"UPDATE workers SET {changed}")
        health = (await lonely_api.http.get("/api/health")).json()
        while not health["postgres"]["ok"]:  # on a busy machine it may answer too late
            health = (await lonely_api.http.get("/api/health")).json()
        assert health["active_workers"] == active, changed


async def test_jobs_are_counted_as_they_wait_and_run(lonely_api: Api) -> None:
    videos = [await story.planned(lonely_api.database) for _ in range(3)]
    await story.tell(lonely_api.database, story.claim(videos[0], StepName.TRANSCODE))
    health = (await lonely_api.http.get("/api/health")).json()
    assert (health["pending_jobs"], health["processing_jobs"]) == (2, 1)


async def test_the_one_that_is_away_is_named(lonely_api: Api) -> None:
    shutil.rmtree(lonely_api.root)
    lonely_api.root.write_text("a file where the folder was")
    answer = await lonely_api.http.get("/api/health")
    assert answer.status_code == 503
    health = answer.json()
    assert health["status"] == "unhealthy"
    assert (health["postgres"]["ok"], health["temporal"]["ok"], health["storage"]["ok"]) == (True, False, False)
    assert health["queue_depth"] is None and health["pending_jobs"] == 0
    assert str(lonely_api.root) not in answer.text
    assert (await lonely_api.http.get("/health")).json() == {"status": "ok"}
    upload = await lonely_api.http.put("/api/videos", content=b"x")
    assert (upload.status_code, upload.json()["error"]) == (503, "STORAGE_UNAVAILABLE")
    assert upload.headers["retry-after"]


@pytest.fixture
def own_postgres(tmp_path: Path) -> Iterator[PostgresServer]:
    server = PostgresServer(tmp_path)
    server.create()
    server.start()
    yield server
    server.stop()


async def test_while_postgres_is_away_answers_say_so_and_playback_goes_on(
    own_postgres: PostgresServer, tmp_path: Path
) -> None:
    await migrate(own_postgres.url())
    async with serving(own_postgres.url(), tmp_path / "storage") as api:
        (api.root / "videos/film").mkdir(parents=True)
        (api.root / "videos/film/master.m3u8").write_bytes(b"#EXTM3U\n")
        await asyncio.to_thread(own_postgres.stop, signal.SIGINT)
        for method, path in (("GET", "/api/videos"), ("GET", "/api/videos/1/progress"), ("PUT", "/api/videos")):
            answer = await api.http.request(method, path, content=b"x" if method == "PUT" else None)
            assert (answer.status_code, answer.json()["error"]) == (503, "DATABASE_UNAVAILABLE"), answer.text
            assert answer.headers["retry-after"]
        health = await api.http.get("/api/health")
        assert (health.status_code, health.json()["postgres"]["ok"]) == (503, False)
        assert health.json()["pending_jobs"] is None
        assert (await api.http.get("/health")).status_code == 200
        assert (await api.http.get("/videos/film/master.m3u8")).status_code == 200
        assert [name for name in api.files() if name.startswith("uploads/")] == []
        await asyncio.to_thread(own_postgres.start)

        async def is_back() -> bool:
            return (await api.http.get("/api/videos")).status_code == 200

        await eventually(is_back, within=10)


async def test_an_upload_outlasts_a_restart_of_postgres(own_postgres: PostgresServer, tmp_path: Path) -> None:
    await migrate(own_postgres.url())
    async with serving(own_postgres.url(), tmp_path / "storage") as api:
        arrived, go_on = asyncio.Event(), asyncio.Event()

        async def slowly() -> AsyncIterator[bytes]:
            yield b"first half, "
            arrived.set()
            await go_on.wait()
            yield b"second half"

        upload = asyncio.create_task(api.http.put("/api/videos", content=slowly()))
        await arrived.wait()

        async def has_begun() -> bool:
            return any(name.startswith("uploads/") for name in api.files())

        await eventually(has_begun, within=5)
        await asyncio.to_thread(own_postgres.stop, signal.SIGINT)
        go_on.set()
        await asyncio.sleep(0.5)
        await asyncio.to_thread(own_postgres.start)
        answer = await upload
        assert answer.status_code == 201, answer.text
        assert len(await api.rows("SELECT id FROM videos")) == 1
        assert list(api.files().values()) == [b"first half, second half"]
