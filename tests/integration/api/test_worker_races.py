"""Every race of a worker with those who decide about it (seed 000).

The first has the row and has not committed; the second has come and waits.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from sqlalchemy import text

from contracts.states import StepName, WorkerStatus
from mirror import registry, writes
from mirror.chores_workers import mark_silent_workers_offline
from mirror.claims import WorkerIdentity
from mirror.sessions import Database
from tests.integration.api.running import Api
from tests.integration.api.workers import SILENT_S, events, mark, refused, register
from tests.integration.mirror import story
from tests.support.eventually import eventually


async def waiting_for_a_lock(database: Database) -> None:
    async def is_waiting() -> bool:
        async with database.read() as s:
            query = (
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
            )
            return bool((await s.execute(text(query))).scalar_one())

    await eventually(is_waiting, within=30)


async def race(api: Api, first: Callable[[Any], Awaitable[Any]], second: Awaitable[Any]) -> Any:
    async with api.database.write() as s:
        await first(s)
        later = asyncio.ensure_future(second)
        await waiting_for_a_lock(api.database)
        assert not later.done()
    return await later


async def test_a_beat_over_http_that_is_being_written_saves_its_worker(lonely_api: Api) -> None:
    studio = await register(lonely_api)
    await studio.silent_for(SILENT_S + 1)

    async def beat(s: Any) -> None:
        await writes.worker_heartbeat(s, studio.worker_id, WorkerStatus.BUSY)

    assert await race(lonely_api, beat, mark(lonely_api)) == []
    assert await studio.status() == "busy"


async def test_a_beat_that_comes_while_it_is_marked_offline_brings_it_back(lonely_api: Api) -> None:
    studio = await register(lonely_api)
    await studio.silent_for(SILENT_S + 1)

    async def marking(s: Any) -> None:
        assert await mark_silent_workers_offline(s, silent_s=SILENT_S, start_grace_s=0) == [studio.worker_id]

    answer = await race(lonely_api, marking, studio.beat("busy"))
    assert (answer.status_code, answer.json()["status"]) == (200, "busy")
    assert await mark(lonely_api) == []
    assert [event for event, _ in await events(lonely_api)][1:] == ["worker.offline", "worker.online"]


async def test_a_beat_that_waits_for_a_disable_finds_itself_disabled(lonely_api: Api) -> None:
    studio = await register(lonely_api)

    async def disabling(s: Any) -> None:
        await registry.disable(s, studio.worker_id, "ana")

    assert refused(await race(lonely_api, disabling, studio.beat("idle"))) == (403, "WORKER_DISABLED")
    assert await studio.status() == "disabled"


async def test_a_step_that_waits_for_a_disable_does_not_enable(lonely_api: Api) -> None:
    studio = await register(lonely_api)
    video = await story.planned(lonely_api.database)
    who = WorkerIdentity(studio.worker_id, "studio")
    told = story.tell(lonely_api.database, story.claim(video, StepName.PROBE), worker=who)

    async def disabling(s: Any) -> None:
        await registry.disable(s, studio.worker_id, "ana")

    await race(lonely_api, disabling, told)
    assert await studio.status() == "disabled"


async def test_a_beat_that_was_let_in_before_the_revoke_is_told_of_it(lonely_api: Api) -> None:
    """Its key was good when it was looked at; the row says otherwise when the beat is written."""
    studio = await register(lonely_api)
    await studio.beat("idle")

    async def revoking(s: Any) -> None:
        await registry.revoke(s, studio.worker_id, "ana")

    assert refused(await race(lonely_api, revoking, studio.beat("busy"))) == (401, "WORKER_KEY_REVOKED")
    assert await studio.status() == "offline"


async def test_a_beat_that_waits_for_a_delete_is_nobody_s(lonely_api: Api) -> None:
    studio = await register(lonely_api)
    await studio.beat("idle")

    async def deleting(s: Any) -> None:
        await registry.forget(s, studio.worker_id, "ana", alive_s=60)

    assert refused(await race(lonely_api, deleting, studio.beat("busy"))) == (401, "WORKER_KEY_INVALID")
    assert await lonely_api.rows("SELECT id FROM workers") == []


async def test_a_disable_that_waits_for_a_beat_holds(lonely_api: Api) -> None:
    studio = await register(lonely_api)

    async def beat(s: Any) -> None:
        await writes.worker_heartbeat(s, studio.worker_id, WorkerStatus.BUSY)

    answer = await race(lonely_api, beat, studio.command("PUT", "disable"))
    assert (answer.status_code, answer.json()["status"]) == (200, "disabled")


async def test_many_beats_and_commands_at_once_leave_the_last_word_to_people(lonely_api: Api) -> None:
    studio = await register(lonely_api)
    deeds = [studio.beat(("idle", "busy", "active")[n % 3]) for n in range(12)]
    deeds += [studio.command("PUT", "disable" if n % 2 else "enable") for n in range(6)]
    answers = await asyncio.gather(*deeds)
    assert {answer.status_code for answer in answers} <= {200, 403}
    await studio.command("PUT", "disable")
    assert refused(await studio.beat("idle")) == (403, "WORKER_DISABLED")
    changes = [event for event, _ in await events(lonely_api)][1:]
    assert changes == ["worker.disabled", "worker.enabled"] * (len(changes) // 2) + ["worker.disabled"] * (
        len(changes) % 2
    )
