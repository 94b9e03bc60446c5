"""Answers that are lost on their way, and a Postgres that is away: what that costs steps over HTTP."""

import asyncio
import json
from pathlib import Path

import pytest

from api import gateway, known_keys, unheard
from contracts.gateway import REMOTE_STEPS, RemoteStep
from contracts.steps import TranscodedSpan, TranscodeSpan
from media.tools import find_tools
from mirror import reads_registry
from tests.integration.api.claiming import WAIT, Remote, Waiting, claimed, post, step
from tests.integration.api.remote_worker import working
from tests.integration.api.running import Api, TemporalServer, serving
from tests.integration.api.workers import Machine, refused, register
from tests.support.eventually import eventually
from workers import remote, remote_step

SOON_S = 2.0


async def _never_heard_of_again(api: Api, machine: Machine) -> str:
    """Ask for a step, let the answer come, and say no word of it: so it looks when it was lost on the wire."""
    body = json.dumps(WAIT).encode()
    head = (
        f"POST /api/worker/claim HTTP/1.1\r\nHost: localhost\r\nX-Worker-API-Key: {machine.key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    answer = await api.raw(head.encode() + body)
    assert b" 200 " in answer[:20], answer[:200]
    return str(json.loads(answer.partition(b"\r\n\r\n")[2])["claim"])


async def test_a_claim_whose_answer_is_lost_goes_back_in_seconds_and_costs_no_attempt(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with step(api) as waiting:
        deaf = await register(api, "deaf")
        with monkeypatch.context() as impatient:
            impatient.setattr(unheard, "ACKNOWLEDGED_S", SOON_S)
            lost = await _never_heard_of_again(api, deaf)
        remote = await claimed(api, "steady")
        assert (remote.claimed["generation"], remote.claimed["attempt"]) == (1, 1)
        # Who comes with it after all is told that it is gone.
        assert refused(await Remote(deaf, api, {"claim": lost}).tell("progress")) == (409, "CLAIM_EXPIRED")
        assert (await remote.tell("complete", result={"segments": 4})).status_code == 200
        await waiting.handle.result()
        await _told(waiting, [("partial", 0, 1, "DRAINED"), ("completed", 1, 1, None)])


async def test_a_claim_that_was_heard_of_stays_whichever_api_heard_it(
    database_url: str, tmp_path: Path, temporal_server: TemporalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unheard, "ACKNOWLEDGED_S", 60.0)  # not by the clock: see below
    where = {"temporal_address": temporal_server.address, "sealing_key": "the same for every API"}
    async with (
        serving(database_url, tmp_path / "storage", **where) as first,
        serving(database_url, tmp_path / "storage", **where) as second,
        step(first) as waiting,
    ):
        remote = await claimed(first, says=False)
        assert (await Remote(remote.machine, second, remote.claimed).tell("progress")).status_code == 200
        opened = first.app.state.gateway
        [over] = opened._unheard._waiting.values()
        over._run()  # its time is over, as far as the first one knows
        await asyncio.gather(*opened._tasks)
        assert (await remote.tell("complete", result={"segments": 4})).status_code == 200
        await waiting.handle.result()
        await _told(waiting, [("completed", 0, 1, None)])


async def test_a_step_goes_on_while_postgres_is_away_and_who_is_not_known_waits(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_keys, "PAUSE_S", 0.1)
    async with step(api) as waiting:
        remote, stranger = await claimed(api), await register(api, "stranger")
        disabled = await register(api, "disabled")
        await disabled.command("PUT", "disable")
        assert refused(await post(api, disabled, "claim", **WAIT)) == (403, "WORKER_DISABLED")
        revoked = await register(api, "revoked")
        await revoked.beat()
        await revoked.command("POST", "revoke")
        assert refused(await revoked.beat()) == (401, "WORKER_KEY_REVOKED")

        asked = []

        async def away(*_: object) -> None:
            asked.append(1)
            raise ConnectionRefusedError

        with monkeypatch.context() as outage:
            outage.setattr(reads_registry, "keys_like", away)
            assert (await remote.tell("progress")).json()["cancel_requested"] is False
            assert (await remote.put(waiting.folder + "init.mp4", b"x")).status_code == 200
            assert (await remote.get(f"source/{waiting.span.source_key}")).status_code == 200
            # Nobody else comes in by this way: not who was never seen, nor who was shut out before.
            assert refused(await post(api, stranger, "claim", **WAIT)) == (503, "DATABASE_UNAVAILABLE")
            assert refused(await post(api, disabled, "claim", **WAIT)) == (403, "WORKER_DISABLED")
            assert refused(await post(api, revoked, "claim", **WAIT)) == (503, "DATABASE_UNAVAILABLE")
            assert refused(await post(api, Machine(api, "x", "A" * 43), "progress"))[0] == 503
            # Seen too long before Postgres was last heard of: its key may have been revoked since.
            outage.setattr(known_keys, "LATELY_S", -1.0)
            assert refused(await remote.tell("progress")) == (503, "DATABASE_UNAVAILABLE")
            assert asked
        await asyncio.sleep(0.2)
        # And when it is back it is asked again, at once.
        await remote.machine.command("POST", "revoke")
        assert refused(await remote.tell("progress")) == (401, "WORKER_KEY_REVOKED")


class _OfAnotherVersion(TranscodeSpan):
    asked_since_then: str


async def test_a_step_of_another_version_waits_for_who_understands_it_and_costs_no_attempt(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As while one API of two is rolled out."""
    monkeypatch.setattr(gateway, "NOT_UNDERSTOOD_S", 0.5)
    async with step(api) as waiting:
        with monkeypatch.context() as old:
            old.setitem(REMOTE_STEPS, "transcode_span", RemoteStep(_OfAnotherVersion, TranscodedSpan))
            assert (await post(api, await register(api, "old"), "claim", **WAIT)).status_code == 204
            old.delitem(REMOTE_STEPS, "transcode_span")
            assert (await post(api, await register(api, "older"), "claim", **WAIT)).status_code == 204
        remote = await claimed(api, "new")
        assert (remote.claimed["generation"], remote.claimed["attempt"]) == (2, 1)
        assert (await remote.tell("complete", result={"segments": 4})).status_code == 200
        await waiting.handle.result()


async def test_a_remote_worker_of_older_code_hands_back_what_it_does_not_know_at_no_attempt_and_lives(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "encoding_steps", lambda *_: [])
    monkeypatch.setattr(remote_step, "NOT_UNDERSTOOD_S", 0.5)
    far = await register(api, "far")
    async with step(api) as waiting, working(api, far, tmp_path / "far", await find_tools()):

        async def twice() -> bool:
            return (await waiting.attempts())[:2] == [
                ("partial", 0, 1, "WORKER_FULL"),
                ("partial", 1, 1, "WORKER_FULL"),
            ]

        await eventually(twice, within=20)


async def _told(waiting: Waiting, attempts: list[tuple[str, int, int, str | None]]) -> None:
    async def told() -> bool:
        return await waiting.attempts() == attempts

    await eventually(told, within=5)
