"""A worker that reaches only the API tests itself as a local one does, and the API writes what it sets aside."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest

from api.signs import EVERY_S
from media.tools import find_tools
from tests.integration.api.claiming import claimed, probe, step
from tests.integration.api.remote_worker import working
from tests.integration.api.running import Api
from tests.integration.api.workers import events, register
from tests.support.eventually import eventually
from workers import remote

ASIDE = ["cpu", "probe"]


@dataclass
class Health:
    """Whether the machine's own test is clean."""

    is_good: bool = False

    async def test(self, *_: object) -> None:
        if not self.is_good:
            raise RuntimeError("the disk is on fire")


async def test_a_remote_worker_that_fails_tests_itself_and_stands_aside_over_a_restart_until_it_is_mended(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    health, tools = Health(), await find_tools()
    monkeypatch.setattr(remote, "test_encode", health.test)
    machine = await register(api, "far")

    async def is_aside() -> bool:
        row = await machine.row()
        return (row["pools_aside"], row["quarantined_at"] is not None) == (ASIDE, True)

    async def is_back() -> bool:
        row = await machine.row()
        return (row["pools_aside"], row["quarantined_at"]) == ([], None)

    async with step(api) as waiting:  # its source is no video, but that is not what is told
        async with working(api, machine, tmp_path / "far", tools, quarantine_seconds=0.3):
            await eventually(is_aside, within=20)

            async def told() -> bool:
                return await waiting.attempts() == [("partial", 0, 1, "WORKER_BROKEN")]

            await eventually(told, within=10)
            async with probe(api):
                # The question that it had open when it stood aside was of this pool.
                looked_at = await claimed(api, "near", pool="probe")
                assert looked_at.claimed["generation"] == 0, "who stands aside took it first"
        said = [row["message"] for row in await api.rows("SELECT message FROM job_events WHERE event LIKE 'worker.q%'")]
        assert said == ["far set itself aside: a test encode failed: RuntimeError"]
        assert (await machine.beat()).json()["pools_aside"] == ASIDE
        await asyncio.sleep(2 * EVERY_S)  # what it had asked is noted together with others
        asked_at = (await machine.row())["asked_at"]
        async with working(api, machine, tmp_path / "far", tools, quarantine_seconds=0.3):
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
