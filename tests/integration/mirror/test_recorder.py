"""The recorder remembers at once and writes when it can; Postgres may vanish under it."""

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from contracts.states import StepName, StepOutcome, WorkerStatus
from mirror.migrate import migrate
from mirror.recorder import CLOSE_S, StepRecorder, WorkerIdentity
from mirror.sessions import Database, WriteSession
from mirror.writes import CreatedVideo
from mirror.writes_steps import WorkerLoad, record_step
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
async def recording(
    database: Database, worker: WorkerIdentity = WORKER, *, close_s: float = CLOSE_S
) -> AsyncIterator[StepRecorder]:
    recorder = StepRecorder(database, worker)
    running = asyncio.create_task(recorder.run())
    try:
        yield recorder
    finally:
        await recorder.close(close_s)
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
        while time.monotonic() - began < (2.2 if len(written) >= 4 else 30):
            recorder.beat(transcode, encoded(1, 1).model_copy(update={"frames": len(written)}))
            await asyncio.sleep(0.03)
        # The start, the first progress, then one in a third of the timeout.
        assert 3 <= len(written) <= 3 + (time.monotonic() - began)
        job = await job_row(database, video)
        assert job["state"] == "claimed"
        assert job["claim_expires_at"] > transcode.started_at + timedelta(seconds=4), "beats do not hold the claim"
        before, began = len(written), time.monotonic()
        for done in (2, 3, 4):  # three segments at once
            recorder.beat(transcode, encoded(done, done))
            await asyncio.sleep(0.03)
        await eventually(shows(database, video, progress_percent=90), within=20)
        assert len(written) - before <= 2 + 2 * (time.monotonic() - began)


async def test_a_worker_is_written_of_when_there_is_news_of_it_and_now_and_then(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads: list[WorkerLoad | None] = []

    async def noted(*given: Any) -> bool:
        loads.append(given[3])
        return await record_step(*given)

    monkeypatch.setattr("mirror.recorder.record_step", noted)
    video = await planned(database)
    await register(database)
    transcode = claim(video, StepName.TRANSCODE)
    holding = WorkerLoad(WorkerStatus.BUSY, video.job_id)
    async with recording(database) as recorder:
        recorder.started(transcode)
        await eventually(shows(database, video, state="claimed"), within=15)
        recorder.beat(transcode, encoded(1, 1))
        await eventually(shows(database, video, progress_percent=22), within=15)
        assert loads == [holding, None], "a percent says nothing of the worker"
        monkeypatch.setattr("mirror.recorder.WORD_S", 0.0)
        recorder.beat(transcode, encoded(2, 2))
        await eventually(shows(database, video, progress_percent=45), within=15)
        monkeypatch.undo()
        monkeypatch.setattr("mirror.recorder.record_step", noted)
        recorder.ended(transcode, StepOutcome.COMPLETED)
    assert loads == [holding, None, holding, WorkerLoad(WorkerStatus.IDLE, None)]
    worker = await row(database, "SELECT status, current_job_id FROM workers")
    assert (worker["status"], worker["current_job_id"]) == ("idle", None)


async def test_a_claim_lasts_as_long_as_the_setting_says(database: Database) -> None:
    video = await planned(database)
    recorder = StepRecorder(database, WORKER, claim_s=1800)  # VLOG_WORKER_CLAIM_DURATION_MINUTES=30
    recorder.started(claim(video, StepName.TRANSCODE, heartbeat_timeout_s=5.0))
    await recorder.close()
    lasts = (await job_row(database, video))["claim_expires_at"] - datetime.now(UTC)
    assert timedelta(minutes=25) < lasts <= timedelta(minutes=30)


async def test_a_worker_is_busy_when_its_last_slot_is_taken(database: Database) -> None:
    video, other = await planned(database), await planned(database)
    worker = WorkerIdentity("worker-1", "studio", slots={"vlog-cpu": 2})
    async with recording(database, worker) as recorder:
        first, second = claim(video, StepName.TRANSCODE), claim(other, StepName.TRANSCODE)
        probe = claim(other, StepName.PROBE, queue="vlog-probe")
        recorder.started(first)
        recorder.started(probe)
        assert status(recorder) is WorkerStatus.IDLE
        recorder.started(second)
        assert status(recorder) is WorkerStatus.BUSY
        recorder.ended(first, StepOutcome.COMPLETED)
        assert status(recorder) is WorkerStatus.IDLE


async def test_a_step_whose_end_is_never_heard_does_not_keep_its_worker_busy(database: Database) -> None:
    video = await planned(database)
    await register(database)
    lost = claim(video, StepName.TRANSCODE, heartbeat_timeout_s=0.2)
    async with recording(database) as recorder:
        recorder.started(lost)
        await eventually(shows(database, video, current_step="transcode"), within=15)
        recorder.beat(lost)
        assert status(recorder) is WorkerStatus.BUSY

        async def is_free() -> bool:
            return status(recorder) is WorkerStatus.IDLE

        await eventually(is_free, within=5)
        recorder.beat(lost, encoded(1, 2))  # it lives after all
        assert status(recorder) is WorkerStatus.BUSY

        async def is_written() -> bool:
            return bool((await job_row(database, video))["progress_percent"] > 0)

        await eventually(is_written, within=5)


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


class Counted(Database):
    """Knows when somebody began to write."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.began: list[float] = []

    @asynccontextmanager
    async def write(self) -> AsyncIterator[WriteSession]:
        self.began.append(time.monotonic())
        async with super().write() as session:
            yield session


async def test_a_mirror_that_is_away_is_told_of_once_and_asked_less_and_less_often(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("mirror.recorder.BACKOFF_S", (0.1, 0.4))
    monkeypatch.setattr("mirror.recorder.THROTTLE_S", 0.01)
    caplog.set_level(logging.INFO, "mirror.recorder")
    video = await planned(database)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens there
        nowhere = Counted(f"postgresql+asyncpg://vlog@127.0.0.1:{taken.getsockname()[1]}/none")
        async with recording(nowhere, close_s=0.1) as recorder:
            steps = [claim(video, StepName.TRANSCODE), claim(video, StepName.AUDIO, step_key="audio:0")]
            for step in steps:
                recorder.started(step)
            while len(nowhere.began) < 6:  # beats all the while: none of them makes it ask before its time
                for step in steps:
                    recorder.beat(step, encoded(len(nowhere.began) % 4, 0))
                await asyncio.sleep(0.01)
            waited = [later - sooner for sooner, later in pairwise(nowhere.began)]
            assert all(took >= least for took, least in zip(waited, (0.1, 0.2, 0.4, 0.4, 0.4), strict=True)), waited
            said = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
            assert len(said) == 1 and "does not answer" in said[0], said
    await nowhere.close()


async def test_steps_go_on_while_postgres_is_away_and_the_mirror_catches_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "mirror.recorder")
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
        said = [each.getMessage() for each in caplog.records if "answer" in each.getMessage()]
        assert len(said) == 2 and "does not answer" in said[0] and "answers again" in said[1], said
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
