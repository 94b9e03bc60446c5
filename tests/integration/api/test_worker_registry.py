"""Registering a worker, its key, and who may do what: over HTTP, on a real Postgres."""

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from api.signs import EVERY_S
from contracts.states import StepName, StepOutcome
from mirror import writes
from mirror.claims import WorkerIdentity, WorkerRegistration
from tests.integration.api.running import Api, serving
from tests.integration.api.workers import Machine, events, refused, register
from tests.integration.mirror import story
from tests.support.eventually import eventually


@pytest.fixture
async def guarded(database_url: str, tmp_path: Path) -> AsyncIterator[Api]:
    """An API with both secrets."""
    secrets = {"admin_secret": "ruler", "worker_admin_secret": "hirer"}
    async with serving(database_url, tmp_path / "storage", **secrets) as running:
        yield running


async def test_a_registered_worker_gets_a_key_that_is_kept_as_a_hash(lonely_api: Api) -> None:
    about: dict[str, Any] = {
        "capabilities": {"pools": ["cpu"], "gpu": None},
        "metadata": {"pod": "vlog-7"},
        "version": "1.2",
    }
    studio = await register(lonely_api, "Größe 工作室", worker_type="remote", **about)
    again = await register(lonely_api, "Größe 工作室")

    assert len(studio.key) == 43 and studio.key != again.key  # 256 bits in base64
    row = await studio.row()
    assert (row["worker_name"], row["status"], row["worker_type"]) == ("Größe 工作室", "active", "remote")
    assert (row["capabilities"], row["metadata"], row["version"]) == tuple(about.values())
    assert row["last_heartbeat"] is not None and len(row["worker_id"]) == 36
    [kept] = await lonely_api.rows("SELECT * FROM worker_api_keys WHERE worker_id = :id", id=row["id"])
    assert kept["key_hash"] == hashlib.sha256(studio.key.encode()).hexdigest()
    assert (kept["key_prefix"], kept["hash_version"]) == (studio.key[:8], 1)
    everything = "SELECT row_to_json(w)::text AS t FROM {} w"
    for table in ("workers", "worker_api_keys", "job_events"):
        assert studio.key not in str(await lonely_api.rows(everything.format(table)))
    assert await events(lonely_api) == [("worker.registered", "ana")] * 2


async def test_a_key_is_shown_once_and_its_hash_never(lonely_api: Api) -> None:
    studio = await register(lonely_api)
    await studio.beat()
    for answer in (await studio.command("GET"), await lonely_api.http.get("/api/workers")):
        assert answer.status_code == 200
        assert studio.key not in answer.text and "hash" not in answer.text
    [key] = (await studio.command("GET")).json()["keys"]
    assert key["key_prefix"] == studio.key[:8] and key["last_used_at"]
    made = await lonely_api.http.post("/api/worker/register", json={})
    assert made.headers["cache-control"] == "no-store"


async def test_only_the_right_secret_registers(guarded: Api, database_url: str, tmp_path: Path) -> None:
    async def ask(api: Api, **headers: str) -> tuple[int, str]:
        answer = await api.http.post("/api/worker/register", json={}, headers=headers)
        return answer.status_code, answer.json().get("error", "")

    assert await ask(guarded) == (401, "ADMIN_SECRET_REQUIRED")
    assert await ask(guarded, **{"X-Admin-Secret": "ruler"}) == (403, "ADMIN_SECRET_WRONG")
    assert await ask(guarded, **{"X-Admin-Secret": "hire"}) == (403, "ADMIN_SECRET_WRONG")
    assert await ask(guarded, **{"X-Admin-Secret": "hirer"}) == (201, "")
    # What registers workers rules over nothing else.
    listed = await guarded.http.get("/api/workers", headers={"X-Admin-Secret": "hirer"})
    assert refused(listed) == (403, "ADMIN_SECRET_WRONG")

    async with serving(database_url, tmp_path / "one", admin_secret="ruler") as falling_back:
        assert await ask(falling_back) == (401, "ADMIN_SECRET_REQUIRED")
        assert await ask(falling_back, **{"X-Admin-Secret": "ruler"}) == (201, "")
    async with serving(database_url, tmp_path / "none") as open_to_this_machine:
        assert await ask(open_to_this_machine) == (201, "")
        assert await ask(open_to_this_machine, Origin="https://elsewhere.example") == (403, "ORIGIN_FORBIDDEN")
        assert await ask(open_to_this_machine, Host="elsewhere.example") == (421, "HOST_UNKNOWN")


async def test_every_command_on_workers_needs_the_admin_secret_and_a_key_is_none(guarded: Api) -> None:
    studio = await register(guarded, secret="hirer")
    path = f"/api/workers/{studio.worker_id}"
    routes = [
        ("GET", "/api/workers"),
        ("GET", path),
        ("PUT", f"{path}/disable"),
        ("PUT", f"{path}/enable"),
        ("POST", f"{path}/revoke"),
        ("POST", f"{path}/keys"),
        ("DELETE", f"{path}/keys/1"),
        ("DELETE", path),
    ]
    for method, route in routes:
        with_key = {"X-Worker-API-Key": studio.key}
        assert refused(await guarded.http.request(method, route, headers=with_key)) == (401, "ADMIN_SECRET_REQUIRED")
        wrong = {"X-Admin-Secret": studio.key}
        assert refused(await guarded.http.request(method, route, headers=wrong)) == (403, "ADMIN_SECRET_WRONG")
    assert (await studio.row())["status"] == "active"
    as_admin = await guarded.http.post("/api/worker/heartbeat", headers={"X-Admin-Secret": "ruler"})
    assert refused(as_admin) == (401, "WORKER_KEY_REQUIRED")


async def test_a_bad_key_is_nobody_s(lonely_api: Api) -> None:
    studio, attic = await register(lonely_api, "studio"), await register(lonely_api, "attic")

    async def beat(key: str) -> tuple[int, str]:
        headers = {b"X-Worker-API-Key": key.encode()}
        return refused(await lonely_api.http.post("/api/worker/heartbeat", headers=headers))

    assert refused(await lonely_api.http.post("/api/worker/heartbeat")) == (401, "WORKER_KEY_REQUIRED")
    for key in (
        studio.key[:8],
        studio.key[:-1] + ("A" if studio.key[-1] != "A" else "B"),
        studio.key[:8] + attic.key[8:],  # the beginning finds a row, the whole does not fit it
        studio.key.swapcase(),
        studio.key + "A",
        "A" * 43,
        "' OR 1=1 --" + "x" * 40,
        "ü" * 43,
        "x" * 4000,
    ):
        assert await beat(key) == (401, "WORKER_KEY_INVALID")
    assert await studio.status() == "active"
    [hashed] = await lonely_api.rows("SELECT key_hash FROM worker_api_keys ORDER BY id LIMIT 1")
    assert await beat(hashed["key_hash"]) == (401, "WORKER_KEY_INVALID")  # a stolen table opens no door


async def test_a_key_of_a_hash_we_do_not_know_opens_nothing(lonely_api: Api) -> None:
    studio = await register(lonely_api)
    await lonely_api.change("UPDATE worker_api_keys SET hash_version = 2")
    assert refused(await studio.beat()) == (401, "WORKER_KEY_INVALID")


async def test_an_expired_key_is_refused_from_that_moment_on(lonely_api: Api) -> None:
    studio = await register(lonely_api)
    made = (await studio.command("POST", "keys", json={"expires_in_days": 1})).json()
    short = Machine(lonely_api, studio.worker_id, made["api_key"])
    assert (await short.beat()).status_code == 200
    await lonely_api.change("UPDATE worker_api_keys SET expires_at = now() WHERE key_prefix = :p", p=made["key_prefix"])
    assert refused(await short.beat()) == (401, "WORKER_KEY_EXPIRED")
    assert (await studio.beat()).status_code == 200


async def test_keys_are_compared_in_constant_time_and_hashed_once(
    lonely_api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    studio = await register(lonely_api)
    compared: list[Any] = []
    hashed: list[bytes] = []
    real, plain = hmac.compare_digest, hashlib.sha256

    def compare(a: Any, b: Any) -> bool:
        compared.append(a)
        return real(a, b)

    def sha256(data: bytes = b"") -> Any:
        hashed.append(data)
        return plain(data)

    monkeypatch.setattr("api.worker_keys.hmac.compare_digest", compare)
    monkeypatch.setattr("api.worker_keys.hashlib.sha256", sha256)
    assert (await studio.beat()).status_code == 200
    assert (len(compared), hashed) == (1, [studio.key.encode()])
    # What cannot be a key costs neither a hash nor a look into the database.
    monkeypatch.setattr("mirror.reads_registry.keys_like", None)
    bad = await lonely_api.http.post("/api/worker/heartbeat", headers={"X-Worker-API-Key": "x" * 5000})
    assert refused(bad) == (401, "WORKER_KEY_INVALID")
    assert len(hashed) == 1


async def test_the_use_of_a_key_is_noted_once_a_minute(lonely_api: Api) -> None:
    studio = await register(lonely_api)

    async def used() -> Any:
        [row] = await lonely_api.rows("SELECT last_used_at FROM worker_api_keys")
        return row["last_used_at"]

    async def noted() -> bool:
        return await used() is not None

    assert await used() is None
    await studio.beat()
    await eventually(noted, within=5)
    first = await used()
    await lonely_api.change("UPDATE worker_api_keys SET last_used_at = now() - interval '55 seconds'")
    recent = await used()
    await studio.beat()
    await asyncio.sleep(2 * EVERY_S)
    assert await used() == recent
    await lonely_api.change("UPDATE worker_api_keys SET last_used_at = now() - interval '61 seconds'")
    await studio.beat()

    async def noted_anew() -> bool:
        return bool(await used() > first)

    await eventually(noted_anew, within=5)


async def test_keys_are_changed_without_a_pause_and_with_the_last_one_it_is_shut_out(lonely_api: Api) -> None:
    old = await register(lonely_api)
    made = (await old.command("POST", "keys")).json()
    new = Machine(lonely_api, old.worker_id, made["api_key"])
    assert [(await each.beat()).status_code for each in (old, new)] == [200, 200]
    second, first = (await old.command("GET")).json()["keys"]
    after = await old.command("DELETE", f"keys/{first['key_id']}")
    assert (after.status_code, after.json()["standing"]) == (200, "welcome")
    assert refused(await old.beat()) == (401, "WORKER_KEY_REVOKED")
    assert (await new.beat()).status_code == 200
    after = await old.command("DELETE", f"keys/{second['key_id']}")
    assert (after.json()["standing"], after.json()["status"]) == ("revoked", "offline")
    assert refused(await new.beat()) == (401, "WORKER_KEY_REVOKED")
    assert refused(await old.command("DELETE", "keys/999")) == (404, "WORKER_KEY_NOT_FOUND")
    other = await register(lonely_api, "other")
    assert refused(await other.command("DELETE", f"keys/{first['key_id']}")) == (404, "WORKER_KEY_NOT_FOUND")


async def test_a_worker_is_shown_with_its_job_and_its_last_steps(lonely_api: Api) -> None:
    database = lonely_api.database
    video = await story.planned(database)
    await story.register(database)
    for _ in range(2):  # told twice is one
        await story.tell(database, story.claim(video, StepName.PROBE), end=StepOutcome.COMPLETED)
    await story.tell(database, story.claim(video, StepName.TRANSCODE))
    shown = (await lonely_api.http.get(f"/api/workers/{story.WORKER.worker_id}")).json()
    assert (shown["status"], shown["worker_type"], shown["keys"]) == ("busy", "local", [])
    assert (shown["current_job_id"], shown["current_video_id"]) == (video.job_id, video.video_id)
    assert shown["job"]["state"] == "claimed" and shown["job"]["current_step"] == "transcode"
    assert [(s["step"], s["outcome"]) for s in shown["steps"]] == [("transcode", "running"), ("probe", "completed")]


async def test_the_list_is_filtered_and_goes_on_page_by_page(lonely_api: Api) -> None:
    made = [await register(lonely_api, name) for name in ("a", "b", "b", "d")]
    async with lonely_api.database.write() as s:
        await writes.register_worker(s, WorkerRegistration("local-1", "here"))
    await made[0].beat("busy")

    async def ids(**query: Any) -> list[str]:
        found: list[str] = []
        cursor = None
        while True:
            page = await lonely_api.http.get("/api/workers", params=query | ({"cursor": cursor} if cursor else {}))
            assert page.status_code == 200, page.text
            found += [item["worker_id"] for item in page.json()["items"]]
            cursor = page.json()["next_cursor"]
            if cursor is None:
                return found

    newest_first = ["local-1", *(machine.worker_id for machine in reversed(made))]
    assert await ids() == await ids(limit=2) == newest_first
    assert await ids(status="busy") == [made[0].worker_id]
    assert await ids(type="local") == ["local-1"]
    assert await ids(name="b") == [made[2].worker_id, made[1].worker_id]
    for query in ({"status": "tired"}, {"type": "x"}, {"limit": 0}, {"limit": 201}):
        assert refused(await lonely_api.http.get("/api/workers", params=query)) == (422, "INVALID_REQUEST")
    assert refused(await lonely_api.http.get("/api/workers?cursor=zz")) == (400, "CURSOR_INVALID")


async def test_a_deleted_worker_is_named_for_ever_by_what_it_did(lonely_api: Api) -> None:
    machine = await register(lonely_api)
    video = await story.planned(lonely_api.database)
    who = WorkerIdentity(machine.worker_id, "studio")
    await story.tell(lonely_api.database, story.claim(video, StepName.TRANSCODE), worker=who)
    gone = await machine.command("DELETE")
    assert (gone.status_code, gone.json()) == (200, {"worker_id": machine.worker_id, "deleted": True})
    assert refused(await machine.beat()) == (401, "WORKER_KEY_INVALID")
    assert refused(await machine.command("GET")) == (404, "WORKER_NOT_FOUND")
    assert refused(await machine.command("DELETE")) == (404, "WORKER_NOT_FOUND")
    assert await lonely_api.rows("SELECT id FROM worker_api_keys") == []
    [job] = await lonely_api.rows("SELECT processed_by_worker_id, processed_by_worker_name FROM transcoding_jobs")
    assert tuple(job.values()) == (machine.worker_id, "studio")
    # Whoever still runs under its id can write on: its steps are Temporal's to take away.
    await story.tell(lonely_api.database, story.claim(video, StepName.TRANSCODE), end=StepOutcome.PARTIAL, worker=who)
    [event] = await lonely_api.rows("SELECT actor, fields FROM job_events WHERE event = 'worker.deleted'")
    assert event["actor"] == "ana" and event["fields"]["worker_id"] == machine.worker_id


async def test_a_local_worker_that_runs_is_not_deleted_for_it_would_be_back_and_gets_no_key(lonely_api: Api) -> None:
    local = Machine(lonely_api, "local-1", "")
    async with lonely_api.database.write() as s:
        await writes.register_worker(s, WorkerRegistration("local-1", "here"))
    for verb in ("disable", "enable"):
        assert (await local.command("PUT", verb)).status_code == 200
        assert refused(await local.command("DELETE")) == (409, "WORKER_ALIVE")
    assert (await local.command("POST", "revoke")).json()["standing"] == "revoked"
    assert refused(await local.command("DELETE")) == (409, "WORKER_ALIVE")
    assert refused(await local.command("POST", "keys")) == (409, "WORKER_LOCAL"), "plans would not see it any more"
    await local.silent_for(61)
    assert (await local.command("DELETE")).status_code == 200
    async with lonely_api.database.write() as s:
        await writes.register_worker(s, WorkerRegistration("local-1", "here"))
        await writes.worker_gone(s, "local-1")
    assert (await local.command("DELETE")).status_code == 200


async def test_unknown_workers_are_404_on_every_route(lonely_api: Api) -> None:
    for worker_id in ("nobody", "' OR 1=1 --", "%00ü"):
        for method, verb in (
            ("GET", ""),
            ("PUT", "/disable"),
            ("PUT", "/enable"),
            ("POST", "/revoke"),
            ("POST", "/keys"),
            ("DELETE", ""),
            ("DELETE", "/keys/1"),
        ):
            answer = await lonely_api.http.request(method, f"/api/workers/{worker_id}{verb}")
            assert answer.status_code in (404, 405), (worker_id, verb, answer.text)
            assert json.loads(answer.text).keys() == {"error", "detail"}
    long = await lonely_api.http.get(f"/api/workers/{'x' * 101}")
    assert refused(long) == (422, "INVALID_REQUEST")
