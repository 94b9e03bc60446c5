"""When a worker sets itself aside, and when it comes back. The mirror is real; the machine is told how to fail."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from sqlalchemy import text

from contracts.errors import EncoderCrashed, GpuFailed, ScratchFull, SourceUnreadable, VlogError
from contracts.queues import Pool
from mirror import writes
from mirror.claims import WorkerRegistration
from mirror.sessions import Database
from tests.support.eventually import eventually
from workers.quarantine import STREAK, Quarantine

US, THEM = "us", "them"
POOLS = (Pool.ORCHESTRATE, Pool.IO, Pool.CPU, Pool.GPU)
CPU, GPU, IO = Pool.CPU.queue, Pool.GPU.queue, Pool.IO.queue
FFMPEG_POOLS = {Pool.IO, Pool.CPU, Pool.GPU}
CRASH = EncoderCrashed("It crashed.")


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
        about = {"pools": [pool.value for pool in POOLS]}
        await writes.register_worker(s, WorkerRegistration(worker_id, worker_id, capabilities=about))


@asynccontextmanager
async def watched(database: Database, machine: Machine, *, wait_s: float = 0.05) -> AsyncIterator[Quarantine]:
    made = Quarantine(
        database,
        US,
        POOLS,
        machine.changed,
        encode=machine.encode,
        encode_on_device=machine.encode_on_device,
        first_wait_s=wait_s,
        heard_within_s=90,
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
    return bool(await read(database, "SELECT 1 FROM workers WHERE worker_id = 'us' AND quarantined_at IS NOT NULL"))


async def test_a_broken_worker_beside_others_gives_its_first_failed_step_back_and_says_so(
    database: Database, machine: Machine
) -> None:
    await register(database, US)
    await register(database, THEM)
    machine.broken = True
    async with watched(database, machine, wait_s=60) as quarantine:
        together = await asyncio.gather(*(quarantine.is_ours(CPU, CRASH, "7.1") for _ in range(4)))
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
    if alone:
        machine.broken = True  # nobody could go on with its steps: they fail as they do
    else:
        await register(database, THEM)
    async with watched(database, machine, wait_s=60) as quarantine:
        for step in range(STREAK):
            assert machine.aside == {}, step
            assert not await quarantine.is_ours(CPU, CRASH, "")
        assert set(machine.aside) == FFMPEG_POOLS
        assert "its last 5 steps failed" in machine.aside[Pool.CPU]
        assert await quarantine.is_ours(CPU, CRASH, ""), "what was still running is given back"


@pytest.mark.parametrize("error", [SourceUnreadable("No."), ScratchFull("Later.")], ids=lambda error: error.code)
async def test_bad_uploads_and_busy_disks_take_no_good_worker_out(
    database: Database, machine: Machine, error: VlogError
) -> None:
    await register(database, US)
    await register(database, THEM)
    async with watched(database, machine) as quarantine:
        for _ in range(3 * STREAK):
            assert not await quarantine.is_ours(CPU, error, "")
        assert machine.aside == {} and len(machine.tests) <= 1


async def test_a_broken_worker_finds_no_file_unreadable_while_others_may_look(
    database: Database, machine: Machine
) -> None:
    await register(database, US)
    await register(database, THEM)
    machine.broken = True
    async with watched(database, machine, wait_s=60) as quarantine:
        assert await quarantine.is_ours(IO, SourceUnreadable("None of its pictures can be decoded."), "")


async def test_a_gpu_that_fails_is_set_aside_alone(database: Database, machine: Machine) -> None:
    await register(database, US)
    machine.broken_device = True
    async with watched(database, machine) as quarantine:
        for _ in range(STREAK):
            assert not await quarantine.is_ours(GPU, GpuFailed("No device."), "")
            quarantine.went_well(CPU)
        assert set(machine.aside) == {Pool.GPU}
        await eventually(lambda: is_marked(database), within=10)
        machine.broken_device = False
        await eventually(lambda: _is_clear(database), within=10)
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
        await eventually(lambda: _is_clear(database), within=10)
        assert machine.aside == {}
    assert set(machine.tests) == {"7.1"}, "what failed is what is tested"
    assert [event.event for event in await told(database)] == ["worker.quarantined", "worker.released"]


async def test_a_restart_does_not_bring_it_back(database: Database, machine: Machine) -> None:
    await register(database, US)
    async with database.write() as s:
        await s.execute(text("UPDATE workers SET quarantined_at = now()"))
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
        await eventually(lambda: _is_clear(database), within=10)
        assert machine.aside == {}


async def _is_clear(database: Database) -> bool:
    return not await is_marked(database)
