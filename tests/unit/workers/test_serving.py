"""Which pools are open: what is allowed, until it is time to stop."""

import asyncio
from typing import cast

from temporalio.worker import Worker

from activities.failures import FailureInterceptor
from contracts.queues import Pool
from workers.serving import Serving

SOON = 30.0


class Polling:
    """A worker that ends when the last of its steps does."""

    def __init__(self) -> None:
        self.told, self.steps_ended = asyncio.Event(), asyncio.Event()

    async def run(self) -> None:
        await self.steps_ended.wait()

    async def shutdown(self) -> None:
        self.told.set()
        await self.steps_ended.wait()


async def test_a_signal_to_stop_is_heard_while_a_pool_hands_back() -> None:
    opened: dict[Pool, Polling] = {}

    def build(pool: Pool) -> Worker:
        opened[pool] = Polling()
        return cast(Worker, opened[pool])

    serving, stopping = Serving(build, FailureInterceptor()), asyncio.Event()
    serving.allow([Pool.CPU, Pool.IO])
    running = asyncio.create_task(serving.run(stopping))
    async with asyncio.timeout(SOON):
        while len(opened) < 2:
            await asyncio.sleep(0)
        serving.allow([Pool.IO, Pool.GPU], "The worker set itself aside.")
        await opened[Pool.CPU].told.wait()
        assert not opened[Pool.IO].told.is_set()
        stopping.set()
        await opened[Pool.IO].told.wait()
        assert not running.done(), "it waits for its steps"
        for each in opened.values():
            each.steps_ended.set()
        await running
    assert opened.keys() == {Pool.CPU, Pool.IO}, "nothing is opened once it was told to stop"
