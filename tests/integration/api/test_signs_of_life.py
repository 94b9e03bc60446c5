"""Beats that say nothing new, and questions for work, are written many at a time: none is lost."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from mirror import writes_signs
from mirror.writes_signs import Signs
from tests.integration.api.running import Api
from tests.integration.api.workers import Machine, register
from tests.support.eventually import eventually


async def rows(api: Api) -> dict[str, Any]:
    return {row["worker_name"]: row for row in await api.rows("SELECT *, now() - last_heartbeat AS ago FROM workers")}


async def beaten(api: Api, name: str, times: int) -> None:
    async def is_so() -> bool:
        return bool((await rows(api))[name]["heartbeats"] == times)

    await eventually(is_so, within=5)


async def idle(api: Api, name: str) -> Machine:
    machine = await register(api, name)
    assert (await machine.beat("idle")).json()["status"] == "idle"
    return machine


async def test_beats_that_say_nothing_new_are_written_together_and_every_one_counts(
    lonely_api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first says something new: it is written before it is answered."""
    one, two = await idle(lonely_api, "one"), await idle(lonely_api, "two")
    assert (await rows(lonely_api))["two"]["heartbeats"] == 1
    written: list[Signs] = []
    take = writes_signs.take

    async def counted(session: Any, signs: Signs) -> Signs:
        written.append(signs)
        return await take(session, signs)

    monkeypatch.setattr(writes_signs, "take", counted)
    for _ in range(10):
        answers = [await machine.beat(status) for machine in (one, two) for status in ("idle", "active")]
        assert {(answer.status_code, answer.json()["status"]) for answer in answers} == {(200, "idle")}
    await beaten(lonely_api, "one", 21)
    await beaten(lonely_api, "two", 21)
    assert len(written) < 20, "of forty beats"


async def test_a_beat_that_says_something_new_is_written_at_once(lonely_api: Api) -> None:
    machine = await idle(lonely_api, "one")
    assert (await machine.beat("busy")).json()["status"] == "busy"
    assert (await rows(lonely_api))["one"]["status"] == "busy"
    await machine.beat("busy", version="2")
    assert (await rows(lonely_api))["one"]["version"] == "2"


async def test_a_worker_whose_row_is_held_is_taken_later_and_holds_up_nobody(lonely_api: Api) -> None:
    for name in ("held", "free"):
        machine = await idle(lonely_api, name)
        await machine.silent_for(200)
    ids = {name: row["worker_id"] for name, row in (await rows(lonely_api)).items()}
    signs = Signs(asks={ids["held"], ids["free"], "deleted"}, beats=Counter({ids["held"]: 3, "deleted": 1}))
    async with lonely_api.database.write() as holder:
        await writes_signs.take(holder, Signs(asks={ids["held"]}))
        async with asyncio.timeout(10), lonely_api.database.write() as session:
            late = await writes_signs.take(session, signs)
        assert (late.asks, late.beats) == ({ids["held"]}, Counter({ids["held"]: 3}))
        seen = await rows(lonely_api)
        assert (seen["free"]["asked_at"] is not None, seen["held"]["asked_at"]) == (True, None)
        assert seen["free"]["ago"].total_seconds() < 100 < seen["held"]["ago"].total_seconds()
    async with lonely_api.database.write() as session:
        assert not await writes_signs.take(session, late)
    assert (await rows(lonely_api))["held"]["heartbeats"] == 1 + 3


async def test_a_sign_that_is_written_after_a_person_s_word_changes_nothing_of_it(lonely_api: Api) -> None:
    for name, verb in (("out", "disable"), ("gone", "revoke")):
        machine = await idle(lonely_api, name)
        assert (await machine.command("PUT" if verb == "disable" else "POST", verb)).status_code == 200
        async with lonely_api.database.write() as session:
            sign = Signs(asks={machine.worker_id}, beats=Counter([machine.worker_id]))
            assert not await writes_signs.take(session, sign)
    assert {name: row["status"] for name, row in (await rows(lonely_api)).items()} == {
        "out": "disabled",
        "gone": "offline",
    }


async def test_signs_wait_for_a_postgres_that_is_away(lonely_api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = await idle(lonely_api, "one")
    monkeypatch.setattr("api.signs.AGAIN_S", 0.1)
    take, failed = writes_signs.take, asyncio.Event()

    async def away(session: Any, signs: Signs) -> Signs:
        failed.set()
        raise OSError("Postgres is away")

    monkeypatch.setattr(writes_signs, "take", away)
    await machine.beat("idle")
    await asyncio.wait_for(failed.wait(), 20)
    monkeypatch.setattr(writes_signs, "take", take)
    await beaten(lonely_api, "one", 2)
