"""Every documented transition of a worker (seed 000), over HTTP where there is HTTP for it."""

import asyncio

import pytest

from contracts.states import StepName, StepOutcome, WorkerStanding, WorkerStatus
from mirror import writes
from mirror.chores_workers import mark_silent_workers_offline
from mirror.claims import WorkerIdentity, WorkerRegistration
from mirror.reads_workers import capacity
from mirror.recorder import StepRecorder
from tests.integration.api.running import Api
from tests.integration.api.workers import SILENT_S, Machine, events, mark, refused, register
from tests.integration.mirror import story
from tests.support.eventually import eventually
from workers import registering
from workers.registering import keep_registered


async def put(machine: Machine, status: str) -> None:
    """Bring a fresh worker into a state the way it gets there."""
    if status in ("idle", "busy"):
        assert (await machine.beat(status)).status_code == 200
    elif status == "offline":
        await machine.silent_for(SILENT_S + 1)
        assert await mark(machine.api) == [machine.worker_id]
    elif status == "disabled":
        assert (await machine.command("PUT", "disable")).status_code == 200
    assert await machine.status() == status


async def beats_idle(machine: Machine) -> None:
    await machine.beat("idle")


async def beats_busy(machine: Machine) -> None:
    await machine.beat("busy")


async def just_lives(machine: Machine) -> None:
    await machine.beat("active")


async def falls_silent(machine: Machine) -> None:
    await machine.silent_for(SILENT_S + 1)
    await mark(machine.api)


async def was_just_heard(machine: Machine) -> None:
    await machine.silent_for(SILENT_S - 30)
    await mark(machine.api)


async def never_beat(machine: Machine) -> None:
    await machine.api.change(
        "UPDATE workers SET last_heartbeat = NULL, registered_at = now() - interval '301 s' WHERE worker_id = :id",
        id=machine.worker_id,
    )
    await mark(machine.api)


async def is_disabled(machine: Machine) -> None:
    assert (await machine.command("PUT", "disable")).status_code == 200


async def is_enabled(machine: Machine) -> None:
    assert (await machine.command("PUT", "enable")).status_code == 200


async def is_revoked(machine: Machine) -> None:
    assert (await machine.command("POST", "revoke")).status_code == 200


async def claims(machine: Machine) -> None:
    video = await story.planned(machine.api.database)
    who = WorkerIdentity(machine.worker_id, "studio")
    await story.tell(machine.api.database, story.claim(video, StepName.TRANSCODE), worker=who)


async def claims_and_fails(machine: Machine, end: StepOutcome = StepOutcome.FAILED) -> None:
    video = await story.planned(machine.api.database)
    who = WorkerIdentity(machine.worker_id, "studio")
    what = story.claim(video, StepName.TRANSCODE)
    await story.tell(machine.api.database, what, worker=who)
    await story.tell(machine.api.database, what, end=end, worker=who)
    assert (await machine.row())["current_job_id"] is None


async def claims_and_completes(machine: Machine) -> None:
    await claims_and_fails(machine, StepOutcome.COMPLETED)


async def leaves(machine: Machine) -> None:
    async with machine.api.database.write() as s:
        await writes.worker_gone(s, machine.worker_id)


TABLE = {
    beats_idle: {"active": "idle", "idle": "idle", "busy": "idle", "offline": "idle", "disabled": "disabled"},
    beats_busy: {"active": "busy", "idle": "busy", "busy": "busy", "offline": "busy", "disabled": "disabled"},
    # It says nothing of its slots: what is known stays known.
    just_lives: {"active": "active", "idle": "idle", "busy": "busy", "offline": "idle", "disabled": "disabled"},
    claims: {"active": "busy", "idle": "busy", "busy": "busy", "offline": "busy", "disabled": "disabled"},
    claims_and_fails: {"active": "idle", "idle": "idle", "busy": "idle", "offline": "idle", "disabled": "disabled"},
    claims_and_completes: {"active": "idle", "idle": "idle", "busy": "idle", "offline": "idle", "disabled": "disabled"},
    falls_silent: dict.fromkeys(("active", "idle", "busy", "offline"), "offline") | {"disabled": "disabled"},
    was_just_heard: {s: s for s in ("active", "idle", "busy", "offline", "disabled")},
    never_beat: dict.fromkeys(("active", "idle", "busy", "offline"), "offline") | {"disabled": "disabled"},
    leaves: dict.fromkeys(("active", "idle", "busy", "offline"), "offline") | {"disabled": "disabled"},
    is_disabled: dict.fromkeys(("active", "idle", "busy", "offline", "disabled"), "disabled"),
    is_enabled: {"active": "active", "idle": "idle", "busy": "busy", "offline": "offline", "disabled": "active"},
    is_revoked: dict.fromkeys(("active", "idle", "busy", "offline"), "offline") | {"disabled": "disabled"},
}


async def test_every_deed_in_every_state_of_a_worker(lonely_api: Api) -> None:
    assert len(TABLE) == 13 and all(len(row) == 5 for row in TABLE.values())
    wrong = []
    for deed, row in TABLE.items():
        for before, after in row.items():
            machine = await register(lonely_api, f"{deed.__name__} {before}")
            await put(machine, before)
            await deed(machine)
            if (found := await machine.status()) != after:
                wrong.append((before, deed.__name__, found))
    assert wrong == []


async def test_a_beat_is_answered_with_what_a_worker_must_know(lonely_api: Api) -> None:
    studio = await register(lonely_api)
    told = (await studio.beat("busy")).json()
    assert (told["worker_id"], told["standing"], told["status"]) == (studio.worker_id, "welcome", "busy")
    assert (told["heartbeat_interval"], told["offline_after"]) == (30, 300)
    assert told["server_time"] and told["current_job_id"] is None
    without_a_body = await lonely_api.http.post("/api/worker/heartbeat", headers={"X-Worker-API-Key": studio.key})
    assert without_a_body.json()["status"] == "busy"
    changed = await studio.beat("idle", capabilities={"gpu": "nvenc"}, metadata={"pod": "b"}, version="2")
    assert changed.status_code == 200
    row = await studio.row()
    assert (row["capabilities"], row["metadata"], row["version"]) == ({"gpu": "nvenc"}, {"pod": "b"}, "2")
    await studio.beat("idle")
    assert (await studio.row())["capabilities"] == {"gpu": "nvenc"}


async def slots(api: Api) -> int:
    """Count what plans count on."""
    async with api.database.read() as s:
        return (await capacity(s, heard_within_s=60)).slots


async def test_a_disabled_worker_is_told_so_and_welcome_again_when_enabled(lonely_api: Api) -> None:
    studio = await register(lonely_api, capabilities={"slots": {"cpu": 2}})
    await studio.beat("idle")
    await lonely_api.change("UPDATE workers SET asked_at = now()")
    assert await slots(lonely_api) == 2
    for _ in range(2):  # twice is once
        shown = (await studio.command("PUT", "disable")).json()
        assert (shown["status"], shown["standing"]) == ("disabled", "disabled")
    await studio.silent_for(100)
    assert refused(await studio.beat("idle")) == (403, "WORKER_DISABLED")
    row = await studio.row()
    assert row["status"] == "disabled"
    assert await slots(lonely_api) == 0  # nobody plans with it, though it lives
    [age] = await lonely_api.rows("SELECT now() - last_heartbeat < interval '60 s' AS fresh FROM workers")
    assert age["fresh"]  # and people see that it does
    for _ in range(2):
        assert (await studio.command("PUT", "enable")).json()["status"] == "active"
    assert (await studio.beat("idle")).json()["standing"] == "welcome"
    assert await slots(lonely_api) == 2
    names = [event for event, _ in await events(lonely_api)]
    assert names == ["worker.registered", "worker.disabled", "worker.enabled"]


async def test_a_revoked_worker_comes_back_only_with_a_new_key(lonely_api: Api) -> None:
    studio = await register(lonely_api)
    spare = Machine(lonely_api, studio.worker_id, (await studio.command("POST", "keys")).json()["api_key"])
    for _ in range(2):
        shown = (await studio.command("POST", "revoke")).json()
        assert (shown["standing"], shown["status"]) == ("revoked", "offline")
        assert all(key["revoked_at"] for key in shown["keys"])
    for each in (studio, spare):
        assert refused(await each.beat()) == (401, "WORKER_KEY_REVOKED")
    assert refused(await studio.command("PUT", "enable")) == (409, "WORKER_REVOKED")
    new = Machine(lonely_api, studio.worker_id, (await studio.command("POST", "keys")).json()["api_key"])
    assert (await new.beat()).json()["status"] == "idle"
    assert refused(await studio.beat()) == (401, "WORKER_KEY_REVOKED")
    told = [event for event, _ in await events(lonely_api)]
    assert told.count("worker.revoked") == 1 and told[-1] == "worker.online"


async def test_a_new_key_does_not_enable_a_disabled_worker(lonely_api: Api) -> None:
    studio = await register(lonely_api)
    await studio.command("PUT", "disable")
    await studio.command("POST", "revoke")
    new = Machine(lonely_api, studio.worker_id, (await studio.command("POST", "keys")).json()["api_key"])
    assert refused(await new.beat()) == (403, "WORKER_DISABLED")


async def test_a_local_worker_learns_from_its_own_beat_that_it_is_shut_out_and_let_in(lonely_api: Api) -> None:
    """It has no key and beats into the database; what the write returns is what it acts on."""
    local = Machine(lonely_api, "local-1", "")

    async def beat() -> WorkerStanding:
        async with lonely_api.database.write() as s:
            return await writes.worker_heartbeat(s, "local-1", WorkerStatus.IDLE)

    async def starts() -> WorkerStanding:
        async with lonely_api.database.write() as s:
            return await writes.register_worker(s, WorkerRegistration("local-1", "here"))

    assert await beat() is WorkerStanding.UNKNOWN
    assert await starts() is await beat() is WorkerStanding.WELCOME
    await local.command("PUT", "disable")
    assert await beat() is await starts() is WorkerStanding.DISABLED
    await local.command("PUT", "enable")
    assert await beat() is WorkerStanding.WELCOME
    await local.command("POST", "revoke")
    assert await beat() is await starts() is WorkerStanding.REVOKED
    assert await local.status() == "offline"  # though it beats: nobody counts on it
    assert (await local.command("PUT", "enable")).json()["standing"] == "welcome"
    assert await beat() is WorkerStanding.WELCOME and await local.status() == "idle"


async def test_a_running_worker_hears_by_its_next_beat_what_people_decided(
    lonely_api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the worker's gate acts on (workers/gate.py): one word per beat, from the process's own loop."""
    monkeypatch.setattr(registering, "AGAIN_S", 0.1)
    local = Machine(lonely_api, "local-1", "")
    heard: list[WorkerStanding] = []
    recorder = StepRecorder(lonely_api.database, WorkerIdentity("local-1", "here"))
    registration = WorkerRegistration("local-1", "here")
    beating = asyncio.create_task(keep_registered(lonely_api.database, registration, recorder, 0.1, heard.append))

    async def hears(standing: WorkerStanding) -> None:
        """The beat under way when the command was answered may not have seen it; the one after it must."""
        said = len(heard)

        async def twice() -> bool:
            return len(heard) >= said + 2

        await eventually(twice, within=30, every=0.05)
        assert heard[said + 1] is standing

    try:
        await hears(WorkerStanding.WELCOME)
        for method, verb, standing in (
            ("PUT", "disable", WorkerStanding.DISABLED),
            ("POST", "revoke", WorkerStanding.REVOKED),
            ("PUT", "enable", WorkerStanding.WELCOME),
            ("POST", "revoke", WorkerStanding.REVOKED),
        ):
            assert (await local.command(method, verb)).status_code == 200
            await hears(standing)
        assert await local.status() == "offline"
        # Deleted all the same, though it runs: it makes itself known again.
        said = len(heard)
        await lonely_api.change("DELETE FROM workers")

        async def is_back() -> bool:
            return heard[said:].count(WorkerStanding.WELCOME) > 1

        await eventually(is_back, within=30)
        assert WorkerStanding.UNKNOWN in heard[said:] and await local.status() == "idle"
    finally:
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)


async def test_a_silent_worker_that_is_enabled_is_offline_until_it_speaks(lonely_api: Api) -> None:
    studio = await register(lonely_api)
    await studio.command("PUT", "disable")
    await studio.silent_for(SILENT_S + 1)
    assert (await studio.command("PUT", "enable")).json()["status"] == "offline"
    assert (await studio.beat("busy")).json()["status"] == "busy"


async def test_a_disabled_worker_that_died_lets_go_of_its_job_and_the_claim_ends_by_its_own_clock(
    lonely_api: Api,
) -> None:
    studio = await register(lonely_api)
    await claims(studio)
    await studio.command("PUT", "disable")
    [before] = await lonely_api.rows("SELECT claim_expires_at, worker_id FROM transcoding_jobs")
    assert (await studio.row())["current_job_id"] is not None
    await studio.silent_for(SILENT_S + 1)
    assert await mark(lonely_api) == []
    row = await studio.row()
    assert (row["status"], row["current_job_id"]) == ("disabled", None)
    assert await lonely_api.rows("SELECT claim_expires_at, worker_id FROM transcoding_jobs") == [before]


async def test_who_could_reach_no_api_has_two_minutes_after_it_started(lonely_api: Api) -> None:
    """Housekeeping's own look at it, with nothing set: the API that runs here has just said that it came up."""

    async def is_noted() -> bool:
        return bool(await lonely_api.rows("SELECT 1 FROM housekeeping_marks WHERE name = 'api.started'"))

    await eventually(is_noted, within=30)
    studio = await register(lonely_api)
    await studio.silent_for(SILENT_S + 1)
    async with lonely_api.database.write() as s:
        assert await mark_silent_workers_offline(s, silent_s=SILENT_S) == []
    assert await mark(lonely_api) == [studio.worker_id]  # but for the grace


async def test_offline_clears_its_job_and_recovery_is_told(lonely_api: Api) -> None:
    """Whatever its first word is: a beat, or that it has taken a step."""
    for word in (beats_busy, claims):
        studio = await register(lonely_api)
        await claims(studio)
        await falls_silent(studio)
        assert (await studio.row())["current_job_id"] is None
        await word(studio)
        told = [event for event, actor in await events(lonely_api) if actor == studio.worker_id]
        assert told == ["worker.offline", "worker.online"], word.__name__
        await word(studio)
        assert len([1 for _, actor in await events(lonely_api) if actor == studio.worker_id]) == 2, "told once"
