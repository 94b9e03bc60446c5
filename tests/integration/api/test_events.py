"""Event streams over a real Postgres: they begin with how things are, and tell what changes."""

import asyncio
import signal
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest

from contracts.end_steps import FailJob
from contracts.states import StepName, WorkerStatus
from mirror import writes, writes_deleting
from mirror.migrate import migrate
from mirror.sessions import Database
from tests.integration.api.running import serving
from tests.integration.api.test_process import process
from tests.integration.mirror import story
from tests.support.events import following
from tests.support.eventually import eventually
from tests.support.postgres import PostgresServer

LISTENING = (
    "SELECT pid FROM pg_stat_activity WHERE application_name = 'vlog-listening' AND datname = current_database()"
)


def watching(*video_ids: int) -> str:
    return f"/api/events/progress?video_ids={','.join(map(str, video_ids))}"


async def test_a_video_is_shown_as_it_is_and_then_as_it_becomes(database_url: str, tmp_path: Path) -> None:
    async with serving(database_url, tmp_path / "storage") as api:
        video, other = await story.planned(api.database), await story.planned(api.database)
        async with following(api.http, watching(video.video_id)) as reader:
            assert reader.response.headers["content-type"].startswith("text/event-stream")
            assert reader.response.headers["cache-control"] == "no-store"
            first = await reader.next()
            assert (first.name, first.data["state"]) == (f"transcode_progress:{video.video_id}", "unclaimed")
            assert first.data == (await api.http.get(f"/api/videos/{video.video_id}/progress")).json()
            assert reader.retry_ms == 3000

            claim = story.claim(video, StepName.TRANSCODE)
            await story.tell(api.database, story.claim(other, StepName.TRANSCODE), story.encoded(4, 4))
            await story.tell(api.database, claim, story.encoded(1, 2))
            told = await reader.until(f"transcode_progress:{video.video_id}", state="claimed")
            made = {quality["quality"]: quality["segments_completed"] for quality in told.data["qualities"]}
            assert made == {"720p": 1, "360p": 2, "1080p": 0}

            async with api.database.write() as s:
                end = FailJob(job_id=video.job_id, video_id=video.video_id, code="ENCODER_CRASHED", sentence="No.")
                await writes.fail_job(s, end)
            await reader.until(f"transcode_progress:{video.video_id}", state="failed")
            over = await reader.next()
            assert over.name == f"transcode_complete:{video.video_id}"
            assert (over.data["status"], over.data["error_code"]) == ("failed", "ENCODER_CRASHED")

        async with following(api.http, watching(video.video_id)) as again:
            assert (await again.next()).data["state"] == "failed"
            async with api.database.write() as s:
                await writes_deleting.delete_video(s, video.video_id, None)
            # That it had ended when somebody came is no news.
            assert await again.next() == type(over)(f"video_deleted:{video.video_id}", {"video_id": video.video_id})
            with pytest.raises(StopAsyncIteration):
                await again.next()


async def test_workers_are_shown_and_heard_of(database_url: str, tmp_path: Path) -> None:
    async with serving(database_url, tmp_path / "storage") as api:
        await story.register(api.database)
        async with following(api.http, "/api/events/workers") as reader:
            first = await reader.next()
            assert (first.name, first.data["worker_name"]) == ("worker_status", "studio")
            await story.register(api.database, story.OTHER)
            await reader.until("worker_status", worker_id=story.OTHER.worker_id)
            async with api.database.write() as s:
                await writes.worker_heartbeat(s, story.WORKER.worker_id, WorkerStatus.BUSY)
            await reader.until("worker_status", worker_id=story.WORKER.worker_id, status="busy")
            async with api.database.write() as s:
                await writes.worker_gone(s, story.WORKER.worker_id)
            await reader.until("worker_status", worker_id=story.WORKER.worker_id, status="offline")


async def test_what_cannot_be_followed_is_refused_with_a_code(database_url: str, tmp_path: Path) -> None:
    async with serving(database_url, tmp_path / "storage") as api:
        deleted = await story.upload(api.database)
        async with api.database.write() as s:
            await writes_deleting.delete_video(s, deleted.video_id, None)
        many = ",".join(str(number) for number in range(1, 202))
        for ids, status, code in (
            ("", 400, "VIDEO_IDS_INVALID"),
            ("1,x", 400, "VIDEO_IDS_INVALID"),
            ("-1", 400, "VIDEO_IDS_INVALID"),
            ("0", 400, "VIDEO_IDS_INVALID"),
            ("٣", 400, "VIDEO_IDS_INVALID"),
            ("9" * 400, 400, "VIDEO_IDS_INVALID"),
            (many, 400, "VIDEO_IDS_TOO_MANY"),
            (str(2**63 - 1), 404, "VIDEO_NOT_FOUND"),
            (f"{deleted.video_id},{2**63 - 1}", 404, "VIDEO_NOT_FOUND"),
        ):
            answer = await api.http.get("/api/events/progress", params={"video_ids": ids})
            assert (answer.status_code, answer.json()["error"]) == (status, code), ids


async def test_one_that_is_deleted_does_not_silence_the_others(database_url: str, tmp_path: Path) -> None:
    async with serving(database_url, tmp_path / "storage") as api:
        deleted, video = await story.upload(api.database), await story.planned(api.database)
        async with api.database.write() as s:
            await writes_deleting.delete_video(s, deleted.video_id, None)
        async with following(api.http, watching(deleted.video_id, video.video_id)) as reader:
            first = {(await reader.next()).name, (await reader.next()).name}
            assert first == {f"video_deleted:{deleted.video_id}", f"transcode_progress:{video.video_id}"}
            await story.tell(api.database, story.claim(video, StepName.TRANSCODE), story.encoded(1, 2))
            await reader.until(f"transcode_progress:{video.video_id}", state="claimed")


async def test_streams_need_the_secret_where_one_is_set(database_url: str, tmp_path: Path) -> None:
    async with serving(database_url, tmp_path / "storage", admin_secret="open sesame") as api:
        video = await story.upload(api.database)
        for path in (watching(video.video_id), "/api/events/workers"):
            assert (await api.http.get(path)).status_code == 401
            assert (await api.http.get(path, headers={"X-Admin-Secret": "no"})).status_code == 403
        secret = {"X-Admin-Secret": "open sesame"}
        async with following(api.http, watching(video.video_id), **secret) as reader:
            assert (await reader.next()).data["video_id"] == video.video_id


async def test_many_streams_cost_one_connection_and_a_lost_one_is_made_up_for(
    database_url: str, tmp_path: Path
) -> None:
    async with (
        serving(database_url, tmp_path / "storage", sse_heartbeat_interval=0.2) as api,
        AsyncExitStack() as stack,
    ):
        video = await story.planned(api.database)
        readers = [await stack.enter_async_context(following(api.http, watching(video.video_id))) for _ in range(20)]
        for reader in readers:
            await reader.next()
        await readers[0].until("ping")
        [before] = await api.rows(LISTENING)

        # Changed without a bell: nobody hears of it …
        await api.change("UPDATE transcoding_jobs SET progress_percent = 42 WHERE id = :id", id=video.job_id)
        # … until the connection is lost, and everything is read anew.
        await api.rows("SELECT pg_terminate_backend(:pid)", pid=before["pid"])
        for reader in readers:
            await reader.until(f"transcode_progress:{video.video_id}", percent=42)

        async def is_another() -> bool:  # an ended one is listed for a moment longer
            return [row["pid"] != before["pid"] for row in await api.rows(LISTENING)] == [True]

        await eventually(is_another, within=5)


async def test_a_restart_of_postgres_is_survived(tmp_path: Path) -> None:
    server = PostgresServer(tmp_path)
    server.create()
    server.start()
    try:
        await migrate(server.url())
        async with serving(server.url(), tmp_path / "storage") as api:
            video = await story.planned(api.database)
            async with following(api.http, watching(video.video_id)) as reader:
                await reader.next()
                await asyncio.to_thread(server.stop)
                # Nothing can be read: whoever comes now is told so.
                refused = await api.http.get(watching(video.video_id))
                assert (refused.status_code, refused.json()["error"]) == (503, "DATABASE_UNAVAILABLE")
                await asyncio.to_thread(server.start)

                async def is_written() -> bool:
                    try:
                        return await story.tell(api.database, story.claim(video, StepName.TRANSCODE))
                    except Exception:  # it has just come back
                        return False

                await eventually(is_written, within=20)
                await reader.until(f"transcode_progress:{video.video_id}", state="claimed")
    finally:
        server.stop()


async def test_streams_end_when_the_api_is_told_to_stop(database_url: str, tmp_path: Path) -> None:
    database = Database(database_url)
    try:
        video = await story.planned(database)
        with process(database_url, tmp_path / "home") as (running, url):
            async with httpx.AsyncClient(base_url=url, timeout=60, trust_env=False) as http:
                async with (
                    following(http, watching(video.video_id)) as reader,
                    following(http, "/api/events/workers") as workers,
                ):
                    await reader.next()
                    running.send_signal(signal.SIGTERM)
                    # An end, not a cut: httpx would raise for an answer that was broken off.
                    for each in (reader, workers):
                        with pytest.raises(StopAsyncIteration):
                            await each.next()
            assert await asyncio.to_thread(running.wait, 60) == 0
    finally:
        await database.close()
