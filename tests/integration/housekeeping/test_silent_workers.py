"""Who fell silent is offline; who speaks, or was switched off by a person, is not touched."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from contracts.housekeeping import ChoreDone, KeepHouse
from contracts.states import StepName, WorkerStanding, WorkerStatus
from mirror import writes
from mirror.chores_workers import forget_long_silent_workers
from mirror.claims import WorkerIdentity
from mirror.counting import workers_counts
from mirror.marks import API_STARTED, api_started, marked_at
from mirror.sessions import Database
from runtime.settings import Settings
from tests.integration.mirror.story import WORKER, claim, planned, register, row, rows_of, tell
from workers.chores import chores


async def silent_since(database: Database, minutes: float, **columns: Any) -> None:
    await register(database)
    async with database.write() as s:
        values = {"status": "idle", "beat": True} | columns
        await s.execute(
            text("""
            UPDATE workers SET status = :status, registered_at = now() - make_interval(secs => :age),
                last_heartbeat = CASE WHEN :beat THEN now() - make_interval(secs => :age) END
            """),
            values | {"age": minutes * 60},
        )


async def mark(database: Database) -> int:
    """Do the chore as a worker without settings has it, and give how many it marked."""
    nobody: Any = None  # it asks neither Temporal nor storage
    every = {each.__name__: each for each in chores(nobody, Settings(home=Path("/nowhere")), database, nobody)}
    done: ChoreDone = await every["mark_silent_workers"](KeepHouse())
    return done.count


async def status(database: Database) -> str:
    return str((await row(database, "SELECT status FROM workers"))["status"])


async def test_a_silent_worker_is_offline_and_idle_again_with_its_next_word(database: Database) -> None:
    await silent_since(database, 6)
    assert await mark(database) == 1
    assert await status(database) == "offline"
    assert await mark(database) == 0
    async with database.write() as s:
        assert await writes.worker_heartbeat(s, WORKER.worker_id, WorkerStatus.BUSY)
    assert await status(database) == "busy"
    event = await row(database, "SELECT job_id, actor FROM job_events WHERE event = 'worker.offline'")
    assert event == {"job_id": None, "actor": WORKER.worker_id}


@pytest.mark.parametrize(
    ("minutes", "columns", "after"),
    [
        (4, {}, "idle"),
        (6, {"status": "busy"}, "offline"),
        (6, {"status": "active", "beat": False}, "offline"),  # never heard from: by its registration
        (4, {"status": "active", "beat": False}, "active"),
        (6, {"status": "disabled"}, "disabled"),
        (6, {"status": "disabled", "beat": False}, "disabled"),
    ],
)
async def test_who_is_marked(database: Database, minutes: float, columns: dict[str, Any], after: str) -> None:
    await silent_since(database, minutes, **columns)
    await mark(database)
    assert await status(database) == after


DAY = 24 * 60  # minutes


async def test_a_worker_that_was_offline_for_a_week_is_forgotten_and_what_it_did_is_not(database: Database) -> None:
    video = await planned(database)
    await register(database)
    await tell(database, claim(video, StepName.TRANSCODE))
    await silent_since(database, 7 * DAY + 1, status="offline")
    async with database.write() as s:
        await s.execute(text("UPDATE workers SET heartbeats = 40"))
        before = await workers_counts(s)
    assert await mark(database) == 1
    assert await rows_of(database, "SELECT id FROM workers") == []
    named = "SELECT processed_by_worker_name AS job, worker_name AS step FROM transcoding_jobs, job_steps"
    assert await row(database, named) == {"job": WORKER.worker_name, "step": WORKER.worker_name}
    event = await row(database, "SELECT actor, fields FROM job_events WHERE event = 'worker.deleted'")
    assert event["actor"] is None and event["fields"]["worker_id"] == WORKER.worker_id
    async with database.write() as s:
        assert await workers_counts(s) == before  # no counter goes backwards
        # A process that slept for so long is told, and registers itself anew.
        assert await writes.worker_heartbeat(s, WORKER.worker_id, WorkerStatus.IDLE) is WorkerStanding.UNKNOWN


@pytest.mark.parametrize(
    ("days", "status_then", "also"),
    [
        (6, "offline", ""),
        (8, "disabled", ""),
        (8, "offline", "UPDATE workers SET revoked_at = now() - interval '8 days'"),
        (8, "offline", "UPDATE workers SET worker_type = 'remote'"),
        (
            8,
            "offline",
            "INSERT INTO worker_api_keys (worker_id, key_hash, key_prefix) SELECT id, 'hash', 'prefix' FROM workers",
        ),
    ],
    ids=["six days", "disabled", "revoked", "remote", "with a key"],
)
async def test_who_was_not_silent_for_a_week_or_has_to_do_with_a_person_stays(
    database: Database, days: float, status_then: str, also: str
) -> None:
    await silent_since(database, days * DAY, status=status_then)
    async with database.write() as s:
        if also:
            await s.execute(text(also))
    assert await mark(database) == 0
    assert await status(database) == status_then


async def test_many_are_forgotten_a_batch_at_a_time_and_who_is_being_heard_is_not(database: Database) -> None:
    for number in range(4):
        await register(database, WorkerIdentity(f"pod-{number}", f"pod-{number}"))
    async with database.write() as s:
        await s.execute(text("UPDATE workers SET status = 'offline', last_heartbeat = now() - interval '8 days'"))
    async with database.write() as beating, database.write() as s:
        await writes.worker_heartbeat(beating, "pod-0", WorkerStatus.IDLE)
        assert await forget_long_silent_workers(s, at_once=2) == ["pod-1", "pod-2"]
    async with database.write() as s:
        assert await forget_long_silent_workers(s, at_once=2) == ["pod-3"]
    assert await row(database, "SELECT worker_id, status FROM workers") == {"worker_id": "pod-0", "status": "idle"}


async def test_nobody_is_silent_in_the_two_minutes_after_an_api_start(database: Database) -> None:
    await silent_since(database, 60)
    async with database.write() as s:
        await api_started(s)
    assert await mark(database) == 0
    async with database.write() as s:
        await s.execute(text("UPDATE housekeeping_marks SET at = now() - interval '121 seconds'"))
        assert await marked_at(s, API_STARTED) is not None
    assert await mark(database) == 1


async def test_a_beat_that_is_being_written_saves_its_worker(database: Database) -> None:
    """The documented race: the beat's transaction is open when the chore decides."""
    await silent_since(database, 6)
    async with database.write() as s:
        await writes.worker_heartbeat(s, WORKER.worker_id, WorkerStatus.IDLE)
        marking = asyncio.create_task(mark(database))
        waits = text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")

        async def is_waiting() -> bool:
            async with database.read() as other:
                return bool((await other.execute(waits)).scalar_one())

        while not await is_waiting():
            await asyncio.sleep(0.02)
    assert await marking == 0
    assert await status(database) == "idle"
