"""/metrics: the names that docs/metrics.md lists, true numbers, and an answer while neighbours are away."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import text

from api.health import queue_depth
from contracts.end_steps import FailJob
from contracts.errors import RETRIES_EXHAUSTED
from contracts.states import StepName, StepOutcome, WorkerStanding, WorkerStatus
from mirror import writes
from mirror.chores_files import end_purge
from mirror.counting import count_settled
from mirror.migrate import migrate
from mirror.recorder import StepRecorder
from mirror.registry import forget
from mirror.sessions import Database, WriteSession
from mirror.writes import WorkerRegistration
from tests.integration.api.running import Api, TemporalServer, serving
from tests.integration.mirror.story import OTHER, WORKER, claim, planned, register, rows_of, tell
from tests.support.eventually import eventually
from tests.support.postgres import PostgresServer
from workers.registering import keep_registered

PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"
_ROW = re.compile(r"^\| `(\w+)` \| (\w+) \| (.*?) \|", re.MULTILINE)
_LINE = re.compile(r"^(\w+?)(?:\{(.*)\})? (\S+)$")


async def scraped(api: Api, **headers: str) -> dict[str, float]:
    """Read every sample, by its name and labels as they are written."""
    answer = await api.http.get("/metrics", headers=headers)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = [line for line in answer.text.splitlines() if not line.startswith("#")]
    assert all(_LINE.match(line) for line in lines), lines
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines}


async def a_day(database: Database) -> Any:
    """Let a little of everything happen."""
    await register(database)
    await register(database, OTHER)
    async with database.write() as s:
        await writes.worker_heartbeat(s, WORKER.worker_id, WorkerStatus.IDLE)
        await writes.worker_heartbeat(s, OTHER.worker_id, WorkerStatus.IDLE, failed=4)
    video = await planned(database)
    first, second = (claim(video, StepName.TRANSCODE, attempt=number) for number in (1, 2))
    await tell(database, claim(video, StepName.PROBE), end=StepOutcome.COMPLETED)
    await tell(database, first)
    await tell(database, second, worker=OTHER)  # the first one is lost
    await tell(database, first)  # a zombie
    third = claim(video, StepName.TRANSCODE, attempt=3)
    await tell(
        database, second, end=StepOutcome.FAILED, code="ENCODER_CRASHED", sentence="x", will_retry=True, worker=OTHER
    )
    await tell(database, third)
    return video


async def test_every_documented_name_is_there_and_no_other(api: Api) -> None:
    video = await a_day(api.database)
    failed = await planned(api.database)
    end = FailJob(job_id=failed.job_id, video_id=failed.video_id, code="SOURCE_UNREADABLE", sentence="Broken.")
    async with api.database.write() as s:
        await writes.fail_job(s, end)
    await api.http.get(f"/api/videos/{video.video_id}")
    await api.http.get("/api/videos/nobody")
    await api.http.get("/nowhere/at/all")
    answer = (await api.http.get("/metrics")).text
    documented = {name: (kind, labels) for name, kind, labels in _ROW.findall(PAGE.read_text())}
    typed = dict(re.findall(r"^# TYPE (\w+) (\w+)$", answer, re.MULTILINE))
    assert typed == {name: kind for name, (kind, _) in documented.items()}
    for name, (_, labels) in documented.items():
        sample = re.search(rf"^{name}(?:_bucket)?(?:\{{(.*)\}})? ", answer, re.MULTILINE)
        sample = sample or re.search(rf"^{name}_sum(?:\{{(.*)\}})? ", answer, re.MULTILINE)
        assert sample, name
        assert re.findall(r"(\w+)=\"", sample[1] or "") == re.findall(r"`(\w+)`", labels), name


async def test_the_numbers_are_true_and_survive_purge_and_restart(
    api: Api, database_url: str, tmp_path: Path, temporal_server: TemporalServer
) -> None:
    video = await a_day(api.database)
    left = await queue_depth(api.temporal)  # by tests that share this Temporal
    found = await scraped(api)
    expected = {
        'vlog_up{part="postgres"}': 1,
        'vlog_up{part="temporal"}': 1,
        "worker_heartbeats_total": 2,
        "worker_heartbeat_failures_total": 4,
        'worker_recovered_jobs_total{reason="stale"}': 1,
        'worker_retry_attempts_total{code="ENCODER_CRASHED"}': 1,
        "worker_concurrent_jobs": 1,
        "worker_acquire_conflicts_total": 1,
        'vlog_steps_running{queue="vlog-cpu"}': 1,
        'vlog_step_duration_seconds_count{step="probe"}': 1,
        'vlog_events_total{event="job.created"}': 1,
        'vlog_videos{status="processing"}': 1,
        'vlog_jobs{state="claimed"}': 1,
        'vlog_queue_depth{queue="vlog-cpu"}': left,
        "vlog_oldest_waiting_job_seconds": 0,
    }
    assert {name: found.get(name) for name in expected} == expected

    end = FailJob(job_id=video.job_id, video_id=video.video_id, code=RETRIES_EXHAUSTED, sentence="Three tries.")
    async with api.database.write() as s:
        await writes.fail_job(s, end)
        upto = "(SELECT id FROM job_events WHERE event = 'job.created')"
        await s.execute(text(f"UPDATE job_events SET ts = ts - interval '1 hour' WHERE id <= {upto}"))
    async with api.database.write() as s:
        await count_settled(s)  # the oldest lines, and nothing that is younger
    counted = await rows_of(api.database, "SELECT event, count FROM event_counts ORDER BY event")
    assert [tuple(row.values()) for row in counted] == [("job.created", 1), ("worker.registered", 2)]
    async with api.database.write() as s:
        assert await forget(s, OTHER.worker_id, None, alive_s=0)
        await s.execute(text("UPDATE videos SET deleted_at = now(), purged_at = now()"))
        await end_purge(s, video.video_id)
    assert await rows_of(api.database, "SELECT id FROM job_events WHERE job_id IS NOT NULL") == []
    async with serving(database_url, tmp_path / "again", temporal_address=temporal_server.address) as other:
        later = await scraped(other)
        counters = [name for name in expected if name.split("{")[0].endswith("_total")]
        assert {name: later.get(name) for name in counters} == {name: expected[name] for name in counters}
        assert later["vlog_jobs_max_retries_exceeded_total"] == 1
        assert later['vlog_jobs_failed_total{code="RETRIES_EXHAUSTED"}'] == 1
        assert later['vlog_step_duration_seconds_count{step="probe"}'] == 1
        assert later['vlog_events_total{event="video.purged"}'] == 1
        async with other.database.write() as s:
            await s.execute(text("UPDATE job_events SET ts = ts - interval '1 hour'"))
        for _ in range(2):  # counted twice it counts once
            async with other.database.write() as s:
                await count_settled(s)
        other_counts = {
            row["event"]: row["count"] for row in await rows_of(other.database, "SELECT * FROM event_counts")
        }
        assert (other_counts["video.purged"], other_counts["job.created"]) == (1, 1)


class Flaky(Database):
    """A real database that cannot be reached now and then."""

    refusals = 0

    @asynccontextmanager
    async def write(self) -> AsyncIterator[WriteSession]:
        if self.refusals:
            self.refusals -= 1
            raise OSError("nobody answers")
        async with super().write() as session:
            yield session


async def test_beats_that_could_not_be_written_are_counted_with_the_next(database_url: str) -> None:
    database = Flaky(database_url)
    heard: list[WorkerStanding] = []
    registration = WorkerRegistration("w-1", "studio")
    recorder = StepRecorder(database, WORKER)
    beating = asyncio.create_task(keep_registered(database, registration, recorder, 0.05, heard.append))
    try:

        async def counted(beats: int, failures: int) -> bool:
            found = await rows_of(database, "SELECT heartbeats, heartbeat_failures FROM workers")
            return bool(found) and found[0]["heartbeats"] >= beats and found[0]["heartbeat_failures"] == failures

        await eventually(lambda: counted(1, 0), within=10)
        database.refusals = 3
        await eventually(lambda: counted(2, 3), within=10)
        beats = (await rows_of(database, "SELECT heartbeats FROM workers"))[0]["heartbeats"]
        await eventually(lambda: counted(beats + 2, 3), within=10)  # told once
    finally:
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)
        await database.close()


async def test_requests_are_counted_by_route_and_status(lonely_api: Api) -> None:
    for path in ("/api/videos/123", "/api/videos/124", "/made/up", "/made/up/too", "/api/jobs"):
        await lonely_api.http.get(path)
    found = await scraped(lonely_api)
    count = "vlog_http_requests_total"
    assert found[f'{count}{{method="GET",route="/api/videos/{{video_id}}",status="404"}}'] == 2
    assert found[f'{count}{{method="GET",route="none",status="404"}}'] == 2
    assert found[f'{count}{{method="GET",route="/api/jobs",status="200"}}'] == 1
    took = "vlog_http_request_duration_seconds"
    labels = 'method="GET",route="/api/jobs"'
    assert found[f"{took}_count{{{labels}}}"] == found[f'{took}_bucket{{{labels},le="+Inf"}}'] == 1
    assert 0 < found[f"{took}_sum{{{labels}}}"]
    assert found["vlog_http_requests_in_progress"] == 1  # this very one


async def test_with_everybody_away_it_still_answers(tmp_path: Path, database_url: str) -> None:
    async with serving(database_url, tmp_path / "storage") as api:  # Temporal is away
        found = await scraped(api)
        assert (found['vlog_up{part="postgres"}'], found['vlog_up{part="temporal"}']) == (1, 0)
        assert found['vlog_jobs{state="claimed"}'] == 0 and 'vlog_queue_depth{queue="vlog-cpu"}' not in found


async def test_with_postgres_away_it_says_so(tmp_path: Path) -> None:
    server = PostgresServer(tmp_path / "own")
    (tmp_path / "own").mkdir()
    server.create()
    server.start()
    try:
        await migrate(server.url())
        async with serving(server.url(), tmp_path / "storage") as api:
            server.stop()
            found = await scraped(api)
            assert found['vlog_up{part="postgres"}'] == 0 and "worker_heartbeats_total" not in found
            assert "vlog_http_requests_in_progress" in found
    finally:
        server.stop()


async def test_the_secret_comes_in_either_header(database_url: str, tmp_path: Path) -> None:
    async with serving(database_url, tmp_path / "storage", admin_secret="hush") as api:
        assert (await api.http.get("/metrics")).json()["error"] == "ADMIN_SECRET_REQUIRED"
        wrong = await api.http.get("/metrics", headers={"Authorization": "Bearer shout"})
        assert (wrong.status_code, wrong.json()["error"]) == (403, "ADMIN_SECRET_WRONG")
        assert await scraped(api, Authorization="Bearer hush")
        assert await scraped(api, **{"X-Admin-Secret": "hush"})
