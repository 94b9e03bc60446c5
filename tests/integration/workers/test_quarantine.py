"""When a worker sets itself aside, and when it comes back. The mirror is real; the machine is told how to fail."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from sqlalchemy import text

from contracts.errors import (
    EncoderCrashed,
    GpuFailed,
    GpuLacks,
    ScratchFull,
    SourceUnreadable,
    StorageUnavailable,
    StorageUploadFailed,
    VlogError,
)
from contracts.queues import Pool
from mirror import writes
from mirror.claims import WorkerRegistration
from mirror.reads_workers import capacity, others_serve
from mirror.sessions import Database
from tests.support.eventually import eventually
from workers import quarantine as quarantines
from workers.quarantine import STREAK, Quarantine
from workers.quarantine_notes import MirrorNotes

US, THEM = "us", "them"
POOLS = (Pool.ORCHESTRATE, Pool.IO, Pool.CPU, Pool.GPU)
CPU, GPU, IO = Pool.CPU.queue, Pool.GPU.queue, Pool.IO.queue
FFMPEG_POOLS = {Pool.IO, Pool.CPU, Pool.GPU}
CRASH = EncoderCrashed("It crashed.")
AWAY = StorageUnavailable("Storage did not answer.")


class Machine:
    """What the tests find of ffmpeg and of the GPU, how often they ran, and which pools are aside."""

    def __init__(self) -> None:
        self.broken = self.broken_device = False
        self.tests: list[str] = []
        self.aside: Mapping[Pool, str] = {}

    async def encode(self, build: str) -> None:
        self.tests.append(build)
        await asyncio.sleep(0)
        if self.broken:
            raise EncoderCrashed("It does not even do this.")

    async def encode_on_device(self, build: str) -> None:
        if self.broken_device:
            raise GpuFailed("No device.")

    def changed(self, aside: Mapping[Pool, str]) -> None:
        self.aside = aside


@pytest.fixture
async def machine() -> Machine:
    return Machine()


async def register(database: Database, worker_id: str) -> None:
    async with database.write() as s:
        about = {"pools": [pool.value for pool in POOLS], "slots": {"cpu": 2, "gpu": 1}}
        await writes.register_worker(s, WorkerRegistration(worker_id, worker_id, capabilities=about))


@asynccontextmanager
async def watched(
    database: Database, machine: Machine, *, wait_s: float = 0.05, pools: Sequence[Pool] = POOLS
) -> AsyncIterator[Quarantine]:
    made = Quarantine(
        MirrorNotes(database, US, heard_within_s=90),
        pools,
        machine.changed,
        encode=machine.encode,
        encode_on_device=machine.encode_on_device,
        first_wait_s=wait_s,
    )
    await made.recall()
    running = asyncio.create_task(made.run())
    try:
        yield made
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def read(database: Database, sql: str) -> list[Any]:
    async with database.read() as s:
        return list((await s.execute(text(sql))).all())


async def told(database: Database) -> list[Any]:
    return await read(
        database,
        "SELECT event, job_id, level, message, fields, actor FROM job_events"
        " WHERE event IN ('worker.quarantined', 'worker.released') ORDER BY id",
    )


async def is_marked(database: Database) -> bool:
    return bool(await aside(database))


async def aside(database: Database) -> list[str]:
    """Name the pools that our row says are aside; while there are any it says since when."""
    [(pools, since)] = await read(database, "SELECT pools_aside, quarantined_at FROM workers WHERE worker_id = 'us'")
    assert bool(pools) == (since is not None)
    return list(pools)


async def becomes(database: Database, *pools: Pool) -> None:
    async def is_so() -> bool:
        return await aside(database) == sorted(pools)

    await eventually(is_so, within=10)


async def test_a_broken_worker_beside_others_gives_its_first_failed_step_back_and_says_so(
    database: Database, machine: Machine
) -> None:
    await register(database, US)
    await register(database, THEM)
    machine.broken = True
    async with watched(database, machine, wait_s=60) as quarantine:
        together = await asyncio.gather(*(quarantine.is_ours(CPU, error, "7.1") for error in (AWAY, CRASH) * 2))
        assert together == [True] * 4
        assert machine.tests == ["7.1"], "steps that fail side by side share one test, of the ffmpeg in doubt"
        assert set(machine.aside) == FFMPEG_POOLS, "what orchestrates goes on"
        await eventually(lambda: is_marked(database), within=10)
    [event] = await told(database)
    assert (event.event, event.job_id, event.level, event.actor) == ("worker.quarantined", None, "warning", US)
    assert event.message == "us set itself aside: a test encode failed: It does not even do this."
    assert event.fields == {"worker_id": US, "pools": ["cpu", "gpu", "io"]}


async def test_a_worker_that_works_takes_the_blame_for_nothing(database: Database, machine: Machine) -> None:
    await register(database, US)
    await register(database, THEM)
    async with watched(database, machine) as quarantine:
        for _ in range(STREAK - 1):
            assert not await quarantine.is_ours(CPU, CRASH, "")
        quarantine.went_well(CPU)
        for _ in range(STREAK - 1):
            assert not await quarantine.is_ours(CPU, CRASH, "")
        assert machine.aside == {} and len(machine.tests) == 2 * (STREAK - 1)


@pytest.mark.parametrize("alone", [True, False], ids=["alone", "beside others"])
async def test_five_failures_in_a_row_are_too_many_whatever_the_test_says(
    database: Database, machine: Machine, alone: bool
) -> None:
    await register(database, US)
    if not alone:
        await register(database, THEM)
    async with watched(database, machine, wait_s=60) as quarantine:
        for step in range(STREAK):
            assert machine.aside == {}, step
            assert not await quarantine.is_ours(CPU, CRASH, "")
        assert set(machine.aside) == (FFMPEG_POOLS - {Pool.IO} if alone else FFMPEG_POOLS)
        assert "its last 5 steps failed" in machine.aside[Pool.CPU]
        assert await quarantine.is_ours(CPU, CRASH, ""), "what was still running is given back"


@pytest.mark.parametrize(
    "error",
    [SourceUnreadable("No."), ScratchFull("Later."), AWAY, StorageUploadFailed("No.")],
    ids=lambda error: error.code,
)
async def test_bad_uploads_busy_disks_and_a_storage_that_is_away_take_no_good_worker_out(
    database: Database, machine: Machine, error: VlogError
) -> None:
    await register(database, US)
    await register(database, THEM)
    async with watched(database, machine) as quarantine:
        for _ in range(3 * STREAK):
            assert not await quarantine.is_ours(CPU, error, "")
        assert machine.aside == {} and len(machine.tests) <= 1


async def test_a_broken_worker_finds_no_file_unreadable_alone_or_not(database: Database, machine: Machine) -> None:
    """Alone it goes on with what `io` does without ffmpeg: alerts go that way, also the one that tells of it."""
    await register(database, US)
    machine.broken = True
    unreadable = SourceUnreadable("None of its pictures can be decoded.")
    async with watched(database, machine, wait_s=60) as quarantine:
        assert await quarantine.is_ours(IO, unreadable, "")
        assert set(machine.aside) == {Pool.CPU, Pool.GPU}
        await becomes(database, *FFMPEG_POOLS)
        await asyncio.sleep(0)
        assert await quarantine.is_ours(IO, unreadable, "")
        assert 30 < quarantine.again_in_s(IO) <= 60 and quarantine.again_in_s(CPU) == 1, (
            "what we take comes after a test"
        )

        await register(database, THEM)
        assert await quarantine.is_ours(IO, unreadable, "")
        assert set(machine.aside) == FFMPEG_POOLS and quarantine.again_in_s(IO) == 1, "somebody has come"
    assert len(await told(database)) == 1


async def test_a_gpu_that_fails_is_set_aside_alone_and_the_rest_goes_on_counting(
    database: Database, machine: Machine
) -> None:
    await register(database, US)
    machine.broken_device = True
    async with watched(database, machine) as quarantine:
        for _ in range(STREAK):
            assert not await quarantine.is_ours(GPU, GpuFailed("No device."), "")
            quarantine.went_well(CPU)
        assert set(machine.aside) == {Pool.GPU}
        await becomes(database, Pool.GPU)
        async with database.read() as s:
            assert (await capacity(s, heard_within_s=60)).slots == 2
            assert await others_serve(s, THEM, Pool.CPU, heard_within_s=60)
            assert not await others_serve(s, THEM, Pool.GPU, heard_within_s=60)

        machine.broken = True
        assert await quarantine.is_ours(CPU, CRASH, "")
        await becomes(database, *FFMPEG_POOLS)
        async with database.read() as s:
            assert (await capacity(s, heard_within_s=60)).slots == 0
        machine.broken = False
        await becomes(database, Pool.GPU)
        machine.broken_device = False
        await becomes(database)
        assert machine.aside == {}
    assert [(event.event, event.fields["pools"]) for event in await told(database)] == [
        ("worker.quarantined", ["gpu"]),
        ("worker.quarantined", ["cpu", "io"]),
        ("worker.released", ["cpu", "io"]),
        ("worker.released", ["gpu"]),
    ]


async def test_what_a_gpu_was_not_made_for_takes_it_not_out(database: Database, machine: Machine) -> None:
    await register(database, US)
    async with watched(database, machine) as quarantine:
        for _ in range(2 * STREAK):
            assert not await quarantine.is_ours(GPU, GpuLacks("This worker's GPU has no encoder av1_nvenc."), "")
        assert machine.aside == {}


async def test_a_clean_test_brings_it_back(database: Database, machine: Machine) -> None:
    await register(database, US)
    await register(database, THEM)
    machine.broken = True
    async with watched(database, machine) as quarantine:
        assert await quarantine.is_ours(CPU, CRASH, "7.1")

        async def has_failed_again() -> bool:
            return len(machine.tests) >= 3

        await eventually(has_failed_again, within=10)
        assert set(machine.aside) == FFMPEG_POOLS
        machine.broken = False
        await becomes(database)
        assert machine.aside == {}
        # So it is after five failures in a row, of which no test finds the reason.
        for _ in range(STREAK):
            assert not await quarantine.is_ours(CPU, CRASH, "7.1")
        assert set(machine.aside) == FFMPEG_POOLS

        async def is_back_again() -> bool:
            return [event.event for event in await told(database)] == ["worker.quarantined", "worker.released"] * 2

        await eventually(is_back_again, within=10)
    assert set(machine.tests) == {"7.1"}, "what failed is what is tested"


async def test_a_restart_does_not_bring_it_back(database: Database, machine: Machine) -> None:
    await register(database, US)
    await register(database, THEM)
    await mark(database)
    machine.broken = machine.broken_device = True
    async with watched(database, machine, wait_s=60):
        await register(database, US)
        assert set(machine.aside) == FFMPEG_POOLS

        async def was_tested() -> bool:
            return bool(machine.tests)

        await eventually(was_tested, within=10)  # at once, not after a minute
        assert await is_marked(database)
    machine.broken = machine.broken_device = False
    async with watched(database, machine, wait_s=60):
        await becomes(database)
        assert machine.aside == {}


async def test_a_restart_for_other_pools_leaves_no_mark(database: Database, machine: Machine) -> None:
    await register(database, US)
    await mark(database)
    async with watched(database, machine, wait_s=60, pools=[Pool.ORCHESTRATE]):
        await becomes(database)
        assert machine.aside == {} and machine.tests == []


async def test_a_restart_while_postgres_is_away_recalls_it_when_it_is_back(
    database: Database, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await register(database, US)
    await mark(database)
    monkeypatch.setattr(quarantines, "AGAIN_S", 0.05)
    async with database.write() as s:
        await s.execute(text("ALTER TABLE workers RENAME TO workers_elsewhere"))
    machine.broken = machine.broken_device = True

    async def comes_back() -> None:
        await asyncio.sleep(0.2)
        async with database.write() as s:
            await s.execute(text("ALTER TABLE workers_elsewhere RENAME TO workers"))

    coming = asyncio.create_task(comes_back())
    async with watched(database, machine, wait_s=60):
        await coming
        assert {Pool.CPU, Pool.GPU} <= set(machine.aside)
        machine.broken = machine.broken_device = False
    async with watched(database, machine, wait_s=60):
        await becomes(database)


async def mark(database: Database) -> None:
    async with database.write() as s:
        all_of_them = """quarantined_at = now(), pools_aside = '["cpu", "gpu", "io"]'"""
        await s.execute(text(f"UPDATE workers SET {all_of_them} WHERE worker_id = 'us'"))
