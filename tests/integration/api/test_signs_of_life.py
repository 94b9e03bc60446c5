"""Beats that say nothing new, and questions for work, are written many at a time: none is lost."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Set
from pathlib import Path
from typing import Any

import pytest

from media.tools import find_tools
from mirror import writes_signs
from mirror.writes_signs import Signs, Taken
from storage.http_calls import Away
from tests.integration.api.claiming import post
from tests.integration.api.remote_worker import working
from tests.integration.api.running import Api, TemporalServer, serving
from tests.integration.api.workers import Machine, events, refused, register
from tests.support.eventually import eventually
from workers.remote_api import Heard, RemoteApi


async def rows(api: Api) -> dict[str, Any]:
    return {row["worker_name"]: row for row in await api.rows("SELECT *, now() - last_heartbeat AS ago FROM workers")}


async def beaten(api: Api, name: str, times: int) -> None:
    async def is_so() -> bool:
        return bool((await rows(api))[name]["heartbeats"] >= times)

    await eventually(is_so, within=5)


async def idle(api: Api, name: str) -> Machine:
    machine = await register(api, name)
    assert (await machine.beat("idle")).json()["status"] == "idle"
    return machine


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[Signs]:
    """Give what is written of signs, as it is written."""
    found: list[Signs] = []
    take = writes_signs.take

    async def noted(session: Any, signs: Signs, waiting: Set[str]) -> Taken:
        found.append(signs)
        return await take(session, signs, waiting)

    monkeypatch.setattr(writes_signs, "take", noted)
    return found


async def test_beats_that_say_nothing_new_are_written_together_and_every_one_counts(
    lonely_api: Api, written: list[Signs]
) -> None:
    """The first says something new: it is written before it is answered."""
    one, two = await idle(lonely_api, "one"), await idle(lonely_api, "two")
    written.clear()
    assert (await rows(lonely_api))["two"]["heartbeats"] == 1
    for _ in range(10):
        answers = [await machine.beat(status) for machine in (one, two) for status in ("idle", "active")]
        assert {(answer.status_code, answer.json()["status"]) for answer in answers} == {(200, "idle")}
    await beaten(lonely_api, "one", 21)
    await beaten(lonely_api, "two", 21)
    assert {row["heartbeats"] for row in (await rows(lonely_api)).values()} == {21}
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
            taken = await writes_signs.take(session, signs)
        late = taken.late
        assert taken.unwelcome == {"deleted"}
        assert (late.asks, late.beats) == ({ids["held"]}, Counter({ids["held"]: 3}))
        seen = await rows(lonely_api)
        assert (seen["free"]["asked_at"] is not None, seen["held"]["asked_at"]) == (True, None)
        assert seen["free"]["ago"].total_seconds() < 100 < seen["held"]["ago"].total_seconds()
    async with lonely_api.database.write() as session:
        assert not (await writes_signs.take(session, late)).late
    assert (await rows(lonely_api))["held"]["heartbeats"] == 1 + 3


async def test_a_sign_that_is_written_after_a_person_s_word_changes_nothing_of_it(lonely_api: Api) -> None:
    for name, verb in (("out", "disable"), ("gone", "revoke")):
        machine = await idle(lonely_api, name)
        assert (await machine.command("PUT" if verb == "disable" else "POST", verb)).status_code == 200
        async with lonely_api.database.write() as session:
            sign = Signs(asks={machine.worker_id}, beats=Counter([machine.worker_id]))
            taken = await writes_signs.take(session, sign, {machine.worker_id})
        assert (len(taken.late), taken.unwelcome) == (0, {machine.worker_id})
    assert {name: row["status"] for name, row in (await rows(lonely_api)).items()} == {
        "out": "disabled",
        "gone": "offline",
    }


async def test_signs_wait_for_a_postgres_that_is_away(lonely_api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = await idle(lonely_api, "one")
    monkeypatch.setattr("api.signs.AGAIN_S", 0.1)
    take, failed = writes_signs.take, asyncio.Event()

    async def away(session: Any, signs: Signs, waiting: Set[str]) -> Taken:
        failed.set()
        raise OSError("Postgres is away")

    monkeypatch.setattr(writes_signs, "take", away)
    await machine.beat("idle")
    await asyncio.wait_for(failed.wait(), 20)
    monkeypatch.setattr(writes_signs, "take", take)
    await beaten(lonely_api, "one", 2)


@pytest.fixture
async def brisk(database_url: str, tmp_path: Path, temporal_server: TemporalServer) -> AsyncIterator[Api]:
    """An API whose workers beat twice a second."""
    async with serving(
        database_url, tmp_path / "storage", temporal_address=temporal_server.address, worker_heartbeat_interval=0.5
    ) as running:
        yield running


async def test_who_waits_for_work_lives_without_a_word_and_hears_when_it_is_shut_out(brisk: Api) -> None:
    machine, other = await idle(brisk, "one"), await idle(brisk, "other")
    asking = asyncio.create_task(post(brisk, machine, "claim", pool="cpu", wait_s=50))
    await beaten(brisk, "one", 3)
    # It was thought lost, while nobody could write that it lives.
    await brisk.change("UPDATE workers SET status = 'offline'")

    async def is_back() -> bool:
        return (await machine.status(), await other.status()) == ("idle", "offline")

    await eventually(is_back, within=5)
    assert [event for event, _ in await events(brisk)][-1] == "worker.online"
    await machine.command("PUT", "disable")
    assert refused(await asyncio.wait_for(asking, 20)) == (403, "WORKER_DISABLED")


async def test_the_next_question_of_who_is_counted_on_waits_for_the_next_heartbeat(
    api: Api, written: list[Signs]
) -> None:
    """Two hundred that ask anew every minute would be a transaction a second."""
    machine = await idle(api, "one")
    written.clear()
    for _ in range(3):
        assert (await post(api, machine, "claim", pool="cpu", wait_s=3)).status_code == 204
        await machine.beat("idle")
    assert [signs.asks for signs in written] == [{machine.worker_id}]


async def test_who_has_left_is_counted_on_as_soon_as_it_asks_again(api: Api) -> None:
    """Heartbeats are half a minute apart here."""
    machine = await idle(api, "back soon")

    async def is_back() -> bool:
        return await machine.status() == "idle"

    for _ in range(2):
        await machine.beat("offline")
        assert await machine.status() == "offline"
        asking = asyncio.create_task(post(api, machine, "claim", pool="cpu", wait_s=20))
        await eventually(is_back, within=5)
    asking.cancel()


async def test_a_remote_worker_beats_only_while_it_does_not_ask(
    brisk: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    beat, machine = RemoteApi.beat, await register(brisk, "far")

    async def counted(self: RemoteApi, status: str, about: dict[str, Any] | None = None) -> Heard:
        said.append(status)
        return await beat(self, status, about)

    monkeypatch.setattr(RemoteApi, "beat", counted)
    async with working(brisk, machine, tmp_path / "far", await find_tools()):
        await beaten(brisk, "far", 5)
        assert len(said) < 3, "the API said the rest for it"
        await machine.command("PUT", "disable")  # then it asks no more

        async def beats() -> bool:
            return len(said) > 5

        await eventually(beats, within=10)


async def test_what_an_idle_worker_said_in_vain_it_says_again_and_now_and_then_for_good_measure(
    brisk: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its row may be wrong, and only its own word puts that right."""
    beat, machine = RemoteApi.beat, await register(brisk, "far")
    lost = 2

    async def breaks(self: RemoteApi, status: str, about: dict[str, Any] | None = None) -> Heard:
        nonlocal lost
        if about is None and lost:
            lost -= 1
            raise Away("nobody is there")
        return await beat(self, status, about)

    monkeypatch.setattr(RemoteApi, "beat", breaks)
    monkeypatch.setattr("workers.remote.MOST_SILENT", 3)
    async with working(brisk, machine, tmp_path / "far", await find_tools()):
        await beaten(brisk, "far", 3)
        await brisk.change("UPDATE workers SET status = 'busy'")

        async def is_idle() -> bool:
            return await machine.status() == "idle"

        await eventually(is_idle, within=10)
    assert lost == 0


async def test_who_has_left_is_not_brought_back_by_what_it_asked_before(lonely_api: Api) -> None:
    machine = await idle(lonely_api, "one")
    await machine.beat("offline")
    async with lonely_api.database.write() as session:
        await writes_signs.take(session, Signs(asks={machine.worker_id}))
    assert await machine.status() == "offline"
