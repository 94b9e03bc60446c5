"""Polling, pool by pool: begun, stopped with everything handed back, begun anew; drained on SIGTERM.

Temporal's worker cannot be paused: to stop asking for work it is shut down, and a new one is built to ask again.
"""

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass

from temporalio.worker import Worker

from activities.failures import FailureInterceptor
from contracts.queues import Pool

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Polling:
    worker: Worker
    task: asyncio.Task[None]


class Serving:
    """One per worker process. It polls for nothing until it is told for which pools it may."""

    def __init__(self, build: Callable[[Pool], Worker | None], failures: FailureInterceptor) -> None:
        self._build, self._failures = build, failures  # `build` gives None for a pool that has no steps
        self._wanted: frozenset[Pool] = frozenset()
        self._why = ""
        self._changed = asyncio.Event()
        self._open: dict[Pool, _Polling] = {}

    def allow(self, pools: Collection[Pool], why: str = "") -> None:
        """Say which pools may take work from now on; steps of the others are handed back with this sentence."""
        if frozenset(pools) != self._wanted:
            self._wanted, self._why = frozenset(pools), why
            self._changed.set()

    async def run(self, stopping: asyncio.Event) -> None:
        """Serve until told to stop, then drain; a worker that breaks ends the process, for a fresh one to start."""
        stop = asyncio.create_task(stopping.wait())
        following: asyncio.Task[None] | None = None
        try:
            while await self._nothing_ended(stop):
                # Handing back lasts as long as its steps do. A signal that comes meanwhile is for the others too.
                following = asyncio.create_task(self._follow(stopping))
                await asyncio.wait([following, stop], return_when=asyncio.FIRST_COMPLETED)
                if following.done():
                    following.result()
            if stopping.is_set():
                log.info("draining")
        finally:
            stop.cancel()
            open_now = list(self._open.values())
            await asyncio.gather(*(each.worker.shutdown() for each in open_now), return_exceptions=True)
            await asyncio.gather(*(each.task for each in open_now), *([following] if following else []))

    async def _nothing_ended(self, stop: "asyncio.Task[bool]") -> bool:
        """Wait for a change of what is allowed; False when it is time to stop, or when a worker has broken."""
        changed = asyncio.create_task(self._changed.wait())
        ends: list[asyncio.Task[None] | asyncio.Task[bool]] = [stop, *(each.task for each in self._open.values())]
        done, _ = await asyncio.wait([changed, *ends], return_when=asyncio.FIRST_COMPLETED)
        changed.cancel()
        return not any(end in done for end in ends)

    async def _follow(self, stopping: asyncio.Event) -> None:
        """Close what is not allowed any more, then open what is; nothing any more when told to stop."""
        self._changed.clear()
        wanted, why = self._wanted, self._why
        await self._close([pool for pool in self._open if pool not in wanted], why)
        if stopping.is_set():
            return
        for pool in wanted - self._open.keys():
            self._failures.take_again(pool.queue)
            worker = self._build(pool)
            if worker is not None:
                self._open[pool] = _Polling(worker, asyncio.create_task(worker.run()))

    async def _close(self, pools: Collection[Pool], why: str) -> None:
        closing = [self._open.pop(pool) for pool in pools]
        for pool in pools:
            self._failures.hand_back(pool.queue, why)
        # Whole before anything is opened: Temporal allows a process one worker per queue.
        await asyncio.gather(*(each.worker.shutdown() for each in closing), return_exceptions=True)
        await asyncio.gather(*(each.task for each in closing))
