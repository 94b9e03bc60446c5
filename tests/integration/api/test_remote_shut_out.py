"""A worker that reaches only the API is stopped in the middle of a step: by who shuts it out, or cancels its job."""

import asyncio
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowFailureError

from contracts.gateway import PROGRESS_EVERY_S
from media.tools import find_tools
from tests.integration.api.claiming import Remote, claimed, step
from tests.integration.api.remote_worker import working
from tests.integration.api.running import Api
from tests.integration.api.workers import register
from tests.support.eventually import eventually
from workers import remote


def _endless(monkeypatch: pytest.MonkeyPatch) -> tuple[asyncio.Event, asyncio.Event]:
    """Let a step go on until it is stopped; tells that it has begun, and that it was stopped."""
    begun, stopped = asyncio.Event(), asyncio.Event()

    async def transcode_span(request: Any) -> None:
        begun.set()
        try:
            await asyncio.sleep(600)
        finally:
            stopped.set()
            await asyncio.sleep(0.5)  # its encoder dies, and what that left goes

    monkeypatch.setattr(remote, "encoding_steps", lambda *_: [transcode_span])
    return begun, stopped


async def test_a_cancelled_job_stops_its_step_on_a_remote_worker(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, stopped = _endless(monkeypatch)
    tools, machine = await find_tools(), await register(api, "far")
    assert PROGRESS_EVERY_S <= 4, "a cancel is heard within five seconds, on a machine that has time"
    async with step(api) as waiting, working(api, machine, tmp_path / "far", tools):
        await asyncio.wait_for(begun.wait(), 30)
        await waiting.handle.cancel()
        await asyncio.wait_for(stopped.wait(), 20)  # long before its claim runs out
        with pytest.raises(WorkflowFailureError):
            await waiting.handle.result()

        async def is_told() -> bool:
            return await waiting.attempts() == [("partial", 0, 1, None)]

        await eventually(is_told, within=10)


@pytest.mark.parametrize(("method", "deed"), [("PUT", "disable"), ("POST", "revoke")])
async def test_the_step_of_a_remote_worker_that_is_shut_out_moves_at_no_cost(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, deed: str
) -> None:
    begun, _ = _endless(monkeypatch)
    tools = await find_tools()
    machine = await register(api, "far")
    taken: list[Remote] = []
    # A key that is good for nothing ends the worker; one that is disabled waits to be let in again.
    ends = pytest.raises(remote.KeyRefused, match="revoked") if deed == "revoke" else nullcontext()
    async with step(api) as waiting:
        with ends:
            async with working(api, machine, tmp_path / "far", tools):
                await asyncio.wait_for(begun.wait(), 30)
                assert (await machine.command(method, deed)).status_code == 200
                taken.append(await claimed(api, "near"))  # long before the first one's claim runs out
        assert [(each.claimed["generation"], each.claimed["attempt"]) for each in taken] == [(1, 1)]

        async def is_told() -> bool:
            return await waiting.attempts() == [("partial", 0, 1, "DRAINED"), ("running", 1, 1, None)]

        await eventually(is_told, within=10)


async def test_a_remote_worker_that_is_started_while_it_is_disabled_says_so_and_waits_to_be_let_in(
    api: Api, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "workers.remote")
    machine = await register(api, "far")
    assert (await machine.command("PUT", "disable")).status_code == 200
    async with working(api, machine, tmp_path / "far", await find_tools()):

        async def says() -> bool:
            return [each.message for each in caplog.records if each.name == "workers.remote"] == [
                "no work: This worker is disabled: it gets no work until somebody enables it."
            ]

        await eventually(says, within=5)
        assert (await machine.row())["asked_at"] is None
        assert (await machine.command("PUT", "enable")).status_code == 200

        async def asks() -> bool:
            return (await machine.row())["asked_at"] is not None

        await eventually(asks, within=10)
    assert "welcome again: asking for work" in caplog.messages
