"""A worker that is shut out while it waits for work is given none: asking lasts longer than a heartbeat."""

import asyncio

import pytest

from tests.integration.api.claiming import claimed, post, step
from tests.integration.api.running import Api
from tests.integration.api.workers import refused, register


@pytest.mark.parametrize(
    ("method", "deed", "answer"),
    [("PUT", "disable", (403, "WORKER_DISABLED")), ("POST", "revoke", (401, "WORKER_KEY_REVOKED"))],
)
async def test_who_is_shut_out_while_it_asks_is_given_nothing_and_costs_nothing(
    api: Api, method: str, deed: str, answer: tuple[int, str]
) -> None:
    machine = await register(api, "patient")
    asking = asyncio.create_task(post(api, machine, "claim", pool="cpu", wait_s=30))
    await asyncio.sleep(0.2)  # it waits by now
    assert (await machine.command(method, deed)).status_code == 200
    async with step(api):
        async with asyncio.timeout(10):
            assert refused(await asking) == answer
        other = await claimed(api, "steady")
        # It was on its way to who was shut out and went back, or the question was ended before it came.
        assert other.claimed["attempt"] == 1
