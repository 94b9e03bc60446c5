"""One broken machine must not eat the queue: a worker that fails tests itself, and stands aside if it must.

When a step fails, a few pictures of our own are encoded. If they fail too, it is the machine and not the video: the
step costs no try, and this worker asks for no more. So it does after five failures in a row, whatever the test says.
It comes back when a test is clean. Why so: docs/decisions, 0013 and 0016.
"""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from contracts.errors import (
    DownloadTimeout,
    FailureKind,
    GpuLacks,
    SourceError,
    StorageUnavailable,
    StorageUploadFailed,
    UpstreamFailure,
    VlogError,
    WorkerBroken,
)
from contracts.queues import Pool

log = logging.getLogger(__name__)

STREAK = 5
LONGEST = 20  # times the first wait: 30 s becomes 10 minutes
TRUST_S = 10.0  # others may be blamed this long after the machine was seen to work
AGAIN_S = 2.0
ANSWER_S = 2.0

Test = Callable[[str], Awaitable[None]]  # given the ffmpeg build in doubt, or ""; raises when it is not clean

# Neither the machine's doing nor the video's: a step of which one of these came says nothing about either.
ELSEWHERE = (DownloadTimeout, UpstreamFailure, GpuLacks)
# These blame the file, or the storage, which is away for all workers at once. The test, which needs only our own disk,
# says whether it is us after all; however many they are, they do not.
BLAMES_OTHERS = (SourceError, StorageUnavailable, StorageUploadFailed)


class Notes(Protocol):
    """Where it is written what a worker has set aside: in Postgres, by way of the API where it reaches only that."""

    async def aside(self) -> frozenset[str]:
        """Name the pools that this worker was last known to be unfit for."""

    async def set_aside(self, pools: frozenset[str], why: str) -> None:
        """Note which pools it is unfit for from now on, all of them."""

    async def others_serve(self, pool: Pool) -> bool:
        """Tell whether somebody else was heard of lately who takes such work."""


@dataclass
class Bench:
    """A part of the machine, the pools that cannot do without it, and what has become of it."""

    pools: frozenset[Pool]
    test: Test
    wait_s: float  # before the next test, once it is set aside
    test_at: float = 0.0  # by the clock that never jumps
    streak: int = 0
    build: str = ""  # the ffmpeg that failed last
    why: str = ""  # it is set aside
    kept: frozenset[Pool] = frozenset()  # open all the same
    aside: asyncio.Event = field(default_factory=asyncio.Event)


class Quarantine:
    """One per worker process; the interceptor of failures asks it, the gate follows it, the mirror is told."""

    def __init__(
        self,
        notes: Notes,
        pools: Collection[Pool],
        changed: Callable[[Mapping[Pool, str]], None],
        *,
        encode: Test,
        encode_on_device: Test,
        first_wait_s: float,
    ) -> None:
        self._notes, self._changed = notes, changed
        self._first_wait_s = first_wait_s
        # All but `orchestrate` need an ffmpeg that works: without it a probe would find every file unreadable.
        self._ffmpeg = Bench(frozenset(pools) - {Pool.ORCHESTRATE}, encode, first_wait_s)
        self._device = Bench(frozenset(pools) & {Pool.GPU}, encode_on_device, first_wait_s)
        self._benches = [bench for bench in (self._ffmpeg, self._device) if bench.pools]
        self._testing = asyncio.Lock()
        self._clean_at: dict[str, float] = {}  # when the last clean test of each build began
        self._news = asyncio.Event()
        self._told: frozenset[str] = frozenset()  # the pools that the mirror knows to be aside

    # --- what the interceptor asks ------------------------------------------------------------------------------

    def went_well(self, queue: str) -> None:
        if (bench := self._counted(queue)) is not None:
            bench.streak, bench.wait_s = 0, self._first_wait_s

    async def is_ours(self, queue: str, error: VlogError, build: str) -> bool:
        """Tell whether this machine made a step fail; five that did not, in a row, are too many all the same."""
        pool = next((pool for pool in self._ffmpeg.pools if pool.queue == queue), None)
        if pool is None or error.kind is FailureKind.LATER or isinstance(error, ELSEWHERE):
            return False
        blames_others = isinstance(error, BLAMES_OTHERS)
        # A device that fails has the CPU to fall back on: there is nothing to give back.
        if error.kind is not FailureKind.DESCEND and not await self._works(build, TRUST_S * blames_others):
            return True
        if not blames_others:
            await self._count(pool, error, build)
        return False

    def again_in_s(self, queue: str) -> float:
        """Say how long a step that is ours waits before it is queued anew: while we still ask, until the next test."""
        still_asks = any(pool.queue == queue for pool in self._ffmpeg.kept)
        until_test_s = self._ffmpeg.test_at - time.monotonic() if still_asks else 0.0
        return max(WorkerBroken.retry_after_s, until_test_s)

    async def _works(self, build: str, trust_s: float) -> bool:
        """Test the machine, unless it was found to work since."""
        since = time.monotonic() - trust_s
        async with self._testing:  # steps that fail side by side share one test
            if self._ffmpeg.why:
                await self._look_for_others()  # somebody may have come to whom it can go
                return False
            if self._clean_at.get(build, -math.inf) >= since:
                return True
            began = time.monotonic()
            try:
                await self._ffmpeg.test(build)
            except Exception as error:
                self._ffmpeg.build = build
                await self._set_aside(self._ffmpeg, f"a test encode failed: {_said(error)}")
                return False
            self._clean_at[build] = began
            return True

    def _counted(self, queue: str) -> Bench | None:
        """Name whose streak a step of this queue belongs to: only encoders' count."""
        return {Pool.CPU.queue.value: self._ffmpeg, Pool.GPU.queue.value: self._device}.get(queue)

    async def _count(self, pool: Pool, error: VlogError, build: str) -> None:
        bench = self._counted(pool.queue)
        if bench is None or bench.why:
            return
        bench.streak, bench.build = bench.streak + 1, build
        if bench.streak >= STREAK:
            await self._set_aside(bench, f"its last {STREAK} steps failed, at last: {error.sentence}")

    # --- aside, and back ----------------------------------------------------------------------------------------

    async def recall(self) -> None:
        """Stay aside over a restart, until a test is clean; it is made at once.

        Asks until Postgres answers: without it the worker is not welcome yet, and what is not known would stay in
        its row for ever.
        """
        while True:
            try:
                self._told = await self._notes.aside()
                break
            except Exception as error:
                log.warning("not known yet whether this worker was set aside: %s", error)
                await asyncio.sleep(AGAIN_S)
        for bench, was_aside in ((self._ffmpeg, self._told - {Pool.GPU}), (self._device, self._told & {Pool.GPU})):
            if was_aside and bench.pools:
                bench.wait_s = 0.0
                await self._set_aside(bench, "it was set aside before it was restarted")
        self._announce()  # also what it does not serve any more

    async def run(self) -> None:
        """Test what is aside until it is clean, and tell the mirror, for ever."""
        await asyncio.gather(self._tell(), *map(self._mend, self._benches))

    async def _set_aside(self, bench: Bench, why: str) -> None:
        bench.why, bench.streak = why, 0
        await self._look_for_others()
        bench.aside.set()
        closed = ", ".join(sorted(bench.pools - bench.kept)) or "nobody"
        log.error("set aside, no more work for %s until a test is clean: %s", closed, why)
        self._announce()

    async def _look_for_others(self) -> None:
        """Keep `io` open while nobody else serves it: alerts are posted there, the one about this worker among them.

        What needs ffmpeg there fails, is ours, and waits for the next test.
        """
        kept = self._ffmpeg.kept
        if self._ffmpeg.why and Pool.IO in self._ffmpeg.pools:
            self._ffmpeg.kept = frozenset() if await self._has_others(Pool.IO) else frozenset({Pool.IO})
        if kept != self._ffmpeg.kept and self._ffmpeg.aside.is_set():
            self._announce()

    async def _has_others(self, pool: Pool) -> bool:
        try:
            async with asyncio.timeout(ANSWER_S):
                return await self._notes.others_serve(pool)
        except Exception as error:
            log.warning("not known whether other workers are there: %s", error)
            return False

    async def _mend(self, bench: Bench) -> None:
        while await bench.aside.wait():
            wait_s = bench.wait_s
            # Not from the start again when it comes back and fails at once: only what goes well makes it short again.
            bench.wait_s = min(LONGEST * self._first_wait_s, max(self._first_wait_s, 2 * wait_s))
            bench.test_at = time.monotonic() + wait_s
            await asyncio.sleep(wait_s)
            try:
                await bench.test(bench.build)
            except Exception as error:
                log.warning("still aside, the test encode fails: %s; again in %.0f s", _said(error), bench.wait_s)
                await self._look_for_others()
                continue
            bench.why, bench.build, bench.kept = "", "", frozenset()
            bench.aside.clear()
            log.info("the test encode is clean: asking for work again")
            self._announce()

    def _announce(self) -> None:
        self._changed(
            {
                pool: f"The worker set itself aside: {bench.why}"
                for bench in self._benches
                if bench.why
                for pool in bench.pools - bench.kept
            }
        )
        self._news.set()

    async def _tell(self) -> None:
        """Write to the mirror what changed; a Postgres that is away hears it later."""
        while await self._news.wait():
            self._news.clear()
            aside = [bench for bench in self._benches if bench.why]
            unfit = frozenset(pool.value for bench in aside for pool in bench.pools)
            if unfit == self._told:
                continue
            try:
                await self._notes.set_aside(unfit, "; ".join(bench.why for bench in aside))
                self._told = unfit
            except Exception as error:
                log.warning("the mirror does not know yet whether this worker is set aside: %s", error)
                self._news.set()
                await asyncio.sleep(AGAIN_S)


def _said(error: Exception) -> str:
    return error.sentence if isinstance(error, VlogError) else type(error).__name__
