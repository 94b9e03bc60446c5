"""A worker that reaches only the API tests itself as a local one does, and the API writes what it sets aside."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from activities.failures import FailureInterceptor
from api.asking import EVERY_S
from contracts.queues import Pool
from media.gpu import Gpu
from media.tools import find_tools
from runtime.settings import Settings
from storage.cache import Cache
from storage.http_calls import WorkerCalls
from storage.local import LocalStore
from tests.integration.api.claiming import step
from tests.integration.api.running import Api
from tests.integration.api.workers import Machine, events, register
from tests.support.eventually import eventually
from workers import remote
from workers.remote_api import RemoteApi
from workers.room import Room

ABOUT = {"capabilities": {"pools": ["cpu"], "slots": {"cpu": 1}}}


@dataclass
class Health:
    """Whether the machine's own test is clean."""

    is_good: bool = False

    async def test(self, *_: object) -> None:
        if not self.is_good:
            raise RuntimeError("the disk is on fire")


@asynccontextmanager
async def running(api: Api, machine: Machine, home: Path) -> AsyncIterator[None]:
    """Run a remote worker in this process, against a real API."""
    settings = Settings(home=home, quarantine_seconds=0.3, worker_heartbeat_interval=1)
    work, failures = LocalStore(home / "work"), FailureInterceptor()
    kit = remote.Kit(
        settings, await find_tools(), Gpu(), work, Cache(home / "cache", limit_bytes=1 << 30, reserve_bytes=0)
    )
    room = Room(1 << 40, work.free_bytes, reserve_bytes=0, encoder_bytes=1)
    calls, stopping = WorkerCalls(api.url, machine.key), asyncio.Event()
    worker = remote.RemoteWorker(RemoteApi(calls), kit, room, {Pool.CPU: 1}, failures)
    failures.health = worker.quarantine

    async def serve() -> None:
        try:
            await worker.run(stopping, ABOUT)
        finally:
            await calls.aclose()  # as the end of its process would: what it has not said by now it never says

    serving = asyncio.create_task(serve())
    try:
        yield
    finally:
        stopping.set()
        await serving


async def test_a_remote_worker_that_fails_tests_itself_and_stands_aside_over_a_restart_until_it_is_mended(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    health = Health()
    monkeypatch.setattr(remote, "test_encode", health.test)
    machine = await register(api, "far")

    async def is_aside() -> bool:
        row = await machine.row()
        return (row["pools_aside"], row["quarantined_at"] is not None) == (["cpu"], True)

    async def is_back() -> bool:
        row = await machine.row()
        return (row["pools_aside"], row["quarantined_at"]) == ([], None)

    async with step(api) as waiting:  # its source is no video, but that is not what is told
        async with running(api, machine, tmp_path / "far"):
            await eventually(is_aside, within=20)

            async def told() -> bool:
                return await waiting.attempts() == [("partial", 0, 1, "WORKER_BROKEN")]

            await eventually(told, within=10)
        said = [row["message"] for row in await api.rows("SELECT message FROM job_events WHERE event LIKE 'worker.q%'")]
        assert said == ["far set itself aside: a test encode failed: RuntimeError"]
        assert (await machine.beat()).json()["pools_aside"] == ["cpu"]
        await asyncio.sleep(2 * EVERY_S)  # what it had asked is noted together with others
        asked_at = (await machine.row())["asked_at"]
        async with running(api, machine, tmp_path / "far"):
            await asyncio.sleep(1.5)
            assert await is_aside() and (await machine.row())["asked_at"] == asked_at, "it asks though it is aside"
            health.is_good = True
            await eventually(is_back, within=10)

            async def asks() -> bool:
                return bool((await machine.row())["asked_at"] > asked_at)

            await eventually(asks, within=10)
        assert ("worker.released", machine.worker_id) in await events(api)


async def test_what_a_worker_says_of_its_quarantine_is_cleaned(api: Api) -> None:
    machine = await register(api, "far")
    odd = "on\nfire \x1b[31m" + "x" * 5000
    answer = await machine.beat(pools_aside=["gpu"], aside_because=odd)
    assert (answer.status_code, answer.json()["pools_aside"]) == (200, ["gpu"])
    [row] = await api.rows("SELECT message FROM job_events WHERE event = 'worker.quarantined'")
    assert row["message"].startswith("far set itself aside: on fire [31mxxx") and len(row["message"]) < 600
    assert (await machine.beat(pools_aside=["orchestrate"])).status_code == 422
    assert (await machine.beat(pools_aside=["gpu"] * 1000)).status_code == 422
    assert (await machine.beat(pools_aside=[])).json()["pools_aside"] == []
