"""A worker that reaches only the API is shut out in the middle of a step: that is somebody else's, at no attempt."""

import asyncio
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from tests.integration.api.claiming import Remote, claimed, step
from tests.integration.api.running import Api
from tests.integration.api.test_remote_quarantine import running
from tests.integration.api.workers import register
from tests.support.eventually import eventually
from workers import remote


@pytest.mark.parametrize(("method", "deed"), [("PUT", "disable"), ("POST", "revoke")])
async def test_the_step_of_a_remote_worker_that_is_shut_out_moves_at_no_cost(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, deed: str
) -> None:
    begun = asyncio.Event()

    async def transcode_span(request: Any) -> None:
        begun.set()
        try:
            await asyncio.sleep(600)
        finally:
            await asyncio.sleep(0.5)  # its encoder dies, and what that left goes

    monkeypatch.setattr(remote, "encoding_steps", lambda *_: [transcode_span])
    machine = await register(api, "far")
    taken: list[Remote] = []
    # A key that is good for nothing ends the worker; one that is disabled waits to be let in again.
    ends = pytest.raises(remote.KeyRefused, match="revoked") if deed == "revoke" else nullcontext()
    async with step(api) as waiting:
        with ends:
            async with running(api, machine, tmp_path / "far"):
                await asyncio.wait_for(begun.wait(), 30)
                assert (await machine.command(method, deed)).status_code == 200
                taken.append(await claimed(api, "near"))  # long before the first one's claim runs out
        assert [(each.claimed["generation"], each.claimed["attempt"]) for each in taken] == [(1, 1)]

        async def is_told() -> bool:
            return await waiting.attempts() == [("partial", 0, 1, "DRAINED"), ("running", 1, 1, None)]

        await eventually(is_told, within=10)
