"""The recorder remembers at once and writes when it can; Postgres may vanish under it."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from contracts.states import StepName, StepOutcome, WorkerStatus
from mirror.migrate import migrate
from mirror.recorder import StepRecorder, WorkerIdentity
from mirror.sessions import Database
from mirror.writes import CreatedVideo
from mirror.writes_steps import record_step
from tests.integration.mirror.story import (
    PLAN,
    WORKER,
    claim,
    encoded,
    event_names,
    job_row,
    planned,
    register,
    row,
    rows_of,
    upload,
)
from tests.support.eventually import eventually
from tests.support.postgres import PostgresServer


@asynccontextmanager
async def recording(database: Database, worker: WorkerIdentity = WORKER) -> AsyncIterator[StepRecorder]:
    recorder = StepRecorder(database, worker)
    running = asyncio.create_task(recorder.run())
    try:
        yield recorder
    finally:
        await recorder.close()
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


def status(recorder: StepRecorder) -> WorkerStatus:
    return recorder.status


def shows(database: Database, video: CreatedVideo, **expected: Any) -> Callable[[], Awaitable[bool]]:
    async def check() -> bool:
        job = await job_row(database, video)
        return all(job[name] == value for name, value in expected.items())

    return check


async def test_a_job_is_seen_to_happen(database: Database) -> None:
    video = await upload(database)
    await register(database)
    plan, transcode = claim(video, StepName.PLAN), claim(video, StepName.TRANSCODE)
    async with recording(database) as recorder:
        recorder.started(plan)
        recorder.learned(plan, PLAN)
        recorder.ended(plan, StepOutcome.COMPLETED)
        recorder.started(transcode)
        await eventually(shows(database, video, state="claimed", current_step="transcode"), within=15)
        assert status(recorder) is WorkerStatus.BUSY
        recorder.beat(transcode, encoded(1, 2))
        await eventually(shows(database, video, progress_percent=28), within=15)
        recorder.ended(transcode, StepOutcome.COMPLETED)
        await eventually(shows(database, video, state="unclaimed", video_status="pending"), within=15)
        recorder.beat(transcode, encoded(4, 4))  # after its end: ignored, and the worker is not busy with it again
        assert status(recorder) is WorkerStatus.IDLE
    assert await event_names(database, video) == [
        "job.created",
        "job.started",
        "plan.done",
        "quality.started",
        "quality.started",
        "quality.completed",
        "quality.completed",
        "transcode.done",
    ]
    assert (await row(database, "SELECT status, current_job_id FROM workers"))["current_job_id"] is None


async def test_beats_are_throttled_and_still_hold_the_claim(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[float] = []

    async def counted(*given: Any) -> bool:
        written.append(time.monotonic())
        return await record_step(*given)

    monkeypatch.setattr("mirror.recorder.record_step", counted)
    video = await planned(database)
    transcode = claim(video, StepName.TRANSCODE, heartbeat_timeout_s=3.0)
    async with recording(database) as recorder:
        began = time.monotonic()
        recorder.started(transcode)
        # Beats that say nothing a person could see; on a busy machine a write takes its time.
        while time.monotonic() - began < (2.2 if len(written) >= 3 else 30):
            recorder.beat(transcode, encoded(1, 1).model_copy(update={"frames": len(written)}))
            await asyncio.sleep(0.03)
        # The start, the first progress, then one in a third of the timeout.
        assert 3 <= len(written) <= 3 + (time.monotonic() - began)
        assert (await job_row(database, video))["state"] == "claimed"
        before, began = len(written), time.monotonic()
        for done in (2, 3, 4):  # three segments at once
            recorder.beat(transcode, encoded(done, done))
            await asyncio.sleep(0.03)
        await eventually(shows(database, video, progress_percent=90), within=20)
        assert len(written) - before <= 2 + 2 * (time.monotonic() - began)


async def test_a_worker_is_busy_when_its_last_slot_is_taken(database: Database) -> None:
    video, other = await planned(database), await planned(database)
    worker = WorkerIdentity("worker-1", "studio", slots={"vlog-cpu": 2})
    async with recording(database, worker) as recorder:
        first, second = claim(video, StepName.TRANSCODE), claim(other, StepName.TRANSCODE)
        probe = claim(other, StepName.PROBE, queue="vlog-io")
        recorder.started(first)
        recorder.started(probe)
        assert status(recorder) is WorkerStatus.IDLE
        recorder.started(second)
        assert status(recorder) is WorkerStatus.BUSY
        recorder.ended(first, StepOutcome.COMPLETED)
        assert status(recorder) is WorkerStatus.IDLE


async def test_busy_is_not_broken_and_costs_no_try(database: Database) -> None:
    video = await planned(database)
    async with recording(database) as recorder:
        first = claim(video, StepName.TRANSCODE)
        recorder.started(first)
        recorder.ended(first, StepOutcome.FAILED, code="SCRATCH_FULL", sentence="No room.", will_retry=False)
        recorder.started(claim(video, StepName.TRANSCODE, generation=1))
    job = await job_row(database, video)
    assert (job["attempt_number"], job["last_error"]) == (1, None)
    assert "job.retry_later" in await event_names(database, video)


async def test_news_that_postgres_refuses_do_not_stop_the_others(database: Database) -> None:
    video = await planned(database)
    async with recording(database) as recorder:
        bad = claim(video, StepName.AUDIO, step_key="audio:0", queue="q" * 200)  # longer than the column
        recorder.started(bad)
        recorder.started(claim(video, StepName.TRANSCODE))
        await eventually(shows(database, video, current_step="transcode"), within=15)
        # A job that is not there, as after a deletion.
        gone = CreatedVideo(video.video_id, video.job_id + 99, video.slug, video.status, video.request)  # type: ignore[arg-type]
        recorder.started(claim(gone, StepName.PROBE))
        recorder.ended(claim(gone, StepName.PROBE), StepOutcome.COMPLETED)
    assert [step["step"] for step in await rows_of(database, "SELECT step FROM job_steps")] == ["transcode"]


async def test_closing_writes_what_is_left_and_gives_up_in_time(database: Database) -> None:
    video = await planned(database)
    recorder = StepRecorder(database, WORKER)
    recorder.started(claim(video, StepName.PROBE))
    recorder.ended(claim(video, StepName.PROBE), StepOutcome.COMPLETED)
    await recorder.close()
    assert "probe.done" in await event_names(database, video)
    nowhere = Database("postgresql+asyncpg://vlog@127.0.0.1:9/none")
    lonely = StepRecorder(nowhere, WORKER)
    lonely.started(claim(video, StepName.PROBE))
    began = time.monotonic()
    await lonely.close(timeout_s=1.0)
    assert time.monotonic() - began < 3
    await nowhere.close()


async def test_steps_go_on_while_postgres_is_away_and_the_mirror_catches_up(tmp_path: Path) -> None:
    server = PostgresServer(tmp_path)
    server.create()
    server.start()
    database = Database(server.url(), pool_size=2)
    try:
        await migrate(server.url())
        video = await planned(database)
        transcode = claim(video, StepName.TRANSCODE)
        async with recording(database) as recorder:
            recorder.started(transcode)
            await eventually(shows(database, video, state="claimed"), within=15)
            server.stop()
            for done in (1, 2, 3):
                recorder.beat(transcode, encoded(done, done))
                await asyncio.sleep(0.4)
            audio = claim(video, StepName.AUDIO, step_key="audio:0")
            recorder.started(audio)
            recorder.ended(audio, StepOutcome.COMPLETED)
            server.start()
            await eventually(shows(database, video, state="claimed", progress_percent=70), within=20)
            recorder.ended(transcode, StepOutcome.COMPLETED)
            await eventually(shows(database, video, state="unclaimed", progress_percent=93), within=20)
        job = await job_row(database, video)
        assert job["attempt_number"] == 1
        assert {"audio.done", "transcode.done"} <= set(await event_names(database, video))
    finally:
        await database.close()
        server.stop()


async def test_a_postgres_that_holds_its_connections_and_says_nothing_for_long_costs_no_news(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = PostgresServer(tmp_path)
    server.create()
    server.start()
    patient = Database(server.url(), pool_size=2)  # for looking
    # Minutes of it, with clocks that run faster: to connect, to get a connection of the pool, to be answered, to write.
    monkeypatch.setattr("mirror.sessions.CONNECT_TIMEOUT_S", 0.3)
    monkeypatch.setattr("mirror.sessions.COMMAND_TIMEOUT_S", 0.6)
    monkeypatch.setattr("mirror.recorder.WRITE_TIMEOUT_S", 0.5)
    monkeypatch.setattr("mirror.recorder.BACKOFF_S", (0.05, 0.2))
    database = Database(server.url(), pool_size=2)
    try:
        await migrate(server.url())
        video = await planned(patient)
        transcode = claim(video, StepName.TRANSCODE)
        async with recording(database) as recorder:
            recorder.started(transcode)
            await eventually(shows(patient, video, state="claimed"), within=15)
            server.freeze()
            for beats in range(12):  # six times as long as the pool waits for a connection
                recorder.beat(transcode, encoded(min(3, beats), min(3, beats)))
                await asyncio.sleep(0.3)
            audio = claim(video, StepName.AUDIO, step_key="audio:0")
            recorder.started(audio)
            recorder.ended(audio, StepOutcome.COMPLETED)
            server.thaw()
            await eventually(shows(patient, video, state="claimed", progress_percent=70), within=20)
            recorder.ended(transcode, StepOutcome.COMPLETED)
            await eventually(shows(patient, video, state="unclaimed", progress_percent=93), within=20)
        assert {"audio.done", "transcode.done"} <= set(await event_names(patient, video))
    finally:
        server.thaw()
        await database.close()
        await patient.close()
        server.stop()
