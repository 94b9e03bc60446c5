"""One broken machine must not eat the queue: a worker that fails tests itself, and stands aside if it must.

When a step fails and other workers are there, a few pictures of our own are encoded. If they fail too, the step goes
to the others at no cost, and this worker asks for no more. So it does after five failures in a row, whether alone or
not and whatever the test says. It comes back when a test is clean. Why so: docs/decisions, 0013.
"""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field

from contracts.errors import DownloadTimeout, FailureKind, SourceError, UpstreamFailure, VlogError
from contracts.queues import Pool
from mirror.reads_workers import others_serve
from mirror.sessions import Database
from mirror.writes_quarantine import is_quarantined, quarantine_worker, release_worker

log = logging.getLogger(__name__)

STREAK = 5
LONGEST = 20  # times the first wait: 30 s becomes 10 minutes
TRUST_S = 10.0  # a file may be blamed this long after the machine was seen to work
AGAIN_S = 2.0

Test = Callable[[str], Awaitable[None]]  # given the ffmpeg build in doubt, or ""; raises when it is not clean


@dataclass
class Bench:
    """A part of the machine, the pools that cannot do without it, and what has become of it."""

    pools: frozenset[Pool]
    test: Test
    wait_s: float  # before the next test, once it is set aside
    streak: int = 0
    build: str = ""  # the ffmpeg that failed last
    why: str = ""  # it is set aside
    aside: asyncio.Event = field(default_factory=asyncio.Event)


class Quarantine:
    """One per worker process; the interceptor of failures asks it, the gate follows it, the mirror is told."""

    def __init__(
        self,
        database: Database,
        worker_id: str,
        pools: Collection[Pool],
        changed: Callable[[Mapping[Pool, str]], None],
        *,
        encode: Test,
        encode_on_device: Test,
        first_wait_s: float,
        heard_within_s: float,
    ) -> None:
        self._database, self._worker_id, self._changed = database, worker_id, changed
        self._heard_within_s = heard_within_s  # whoever was silent for longer is not counted on
        self._first_wait_s = first_wait_s
        # All but `orchestrate` need an ffmpeg that works: without it a probe would find every file unreadable.
        self._ffmpeg = Bench(frozenset(pools) - {Pool.ORCHESTRATE}, encode, first_wait_s)
        self._device = Bench(frozenset(pools) & {Pool.GPU}, encode_on_device, first_wait_s)
        self._benches = [bench for bench in (self._ffmpeg, self._device) if bench.pools]
        self._testing = asyncio.Lock()
        self._clean_at: dict[str, float] = {}  # when the last clean test of each build began
        self._news = asyncio.Event()
        self._told = False

    # --- what the interceptor asks ------------------------------------------------------------------------------

    def went_well(self, queue: str) -> None:
        if (bench := self._counted(queue)) is not None:
            bench.streak, bench.wait_s = 0, self._first_wait_s

    async def is_ours(self, queue: str, error: VlogError, build: str) -> bool:
        """Tell whether this machine made a step fail; five that did not, in a row, are too many all the same."""
        pool = next((pool for pool in self._ffmpeg.pools if pool.queue == queue), None)
        if pool is None or error.kind is FailureKind.LATER or isinstance(error, DownloadTimeout | UpstreamFailure):
            return False
        blames_the_file = isinstance(error, SourceError)
        # A device that fails has the CPU to fall back on: there is nothing to give back.
        if error.kind is not FailureKind.DESCEND and not await self._works(pool, build, TRUST_S * blames_the_file):
            return True
        if not blames_the_file:
            self._count(pool, error)
        return False

    async def _works(self, pool: Pool, build: str, trust_s: float) -> bool:
        """Test the machine, unless it was found to work since; one that is alone has nobody to pass its work on to."""
        since = time.monotonic() - trust_s
        async with self._testing:  # steps that fail side by side share one test
            if self._ffmpeg.why:
                return False
            if self._clean_at.get(build, -math.inf) >= since or not await self._has_others(pool):
                return True
            began = time.monotonic()
            try:
                await self._ffmpeg.test(build)
            except Exception as error:
                self._ffmpeg.build = build
                self._set_aside(self._ffmpeg, f"a test encode failed: {_said(error)}")
                return False
            self._clean_at[build] = began
            return True

    async def _has_others(self, pool: Pool) -> bool:
        try:
            async with self._database.read() as session:
                return await others_serve(session, self._worker_id, pool.value, heard_within_s=self._heard_within_s)
        except Exception as error:
            log.warning("not known whether other workers are there: %s", error)
            return False

    def _counted(self, queue: str) -> Bench | None:
        """Name whose streak a step of this queue belongs to: only encoders' count."""
        return {Pool.CPU.queue.value: self._ffmpeg, Pool.GPU.queue.value: self._device}.get(queue)

    def _count(self, pool: Pool, error: VlogError) -> None:
        bench = self._counted(pool.queue)
        if bench is None or bench.why:
            return
        bench.streak += 1
        if bench.streak >= STREAK:
            self._set_aside(bench, f"its last {STREAK} steps failed, at last: {error.sentence}")

    # --- aside, and back ----------------------------------------------------------------------------------------

    async def recall(self) -> None:
        """Stay aside over a restart, until a test is clean; it is made at once."""
        try:
            async with self._database.read() as session:
                self._told = await is_quarantined(session, self._worker_id)
        except Exception as error:
            log.warning("not known whether this worker was set aside: %s", error)
        if self._told:
            for bench in self._benches:
                bench.wait_s = 0.0
                self._set_aside(bench, "it was set aside before it was restarted")

    async def run(self) -> None:
        """Test what is aside until it is clean, and tell the mirror, for ever."""
        await asyncio.gather(self._tell(), *map(self._mend, self._benches))

    def _set_aside(self, bench: Bench, why: str) -> None:
        bench.why, bench.streak = why, 0
        bench.aside.set()
        log.error("set aside, no more work for %s until a test is clean: %s", ", ".join(sorted(bench.pools)), why)
        self._announce()

    async def _mend(self, bench: Bench) -> None:
        while await bench.aside.wait():
            wait_s = bench.wait_s
            # Not from the start again when it comes back and fails at once: only what goes well makes it short again.
            bench.wait_s = min(LONGEST * self._first_wait_s, max(self._first_wait_s, 2 * wait_s))
            await asyncio.sleep(wait_s)
            try:
                await bench.test(bench.build)
            except Exception as error:
                log.warning("still aside, the test encode fails: %s; again in %.0f s", _said(error), bench.wait_s)
                continue
            bench.why, bench.build = "", ""
            bench.aside.clear()
            log.info("the test encode is clean: asking for work again")
            self._announce()

    def _announce(self) -> None:
        self._changed(self._aside())
        self._news.set()

    def _aside(self) -> dict[Pool, str]:
        return {
            pool: f"The worker set itself aside: {bench.why}"
            for bench in self._benches
            if bench.why
            for pool in bench.pools
        }

    async def _tell(self) -> None:
        """Write to the mirror what changed; a Postgres that is away hears it later."""
        while await self._news.wait():
            self._news.clear()
            why = next((bench.why for bench in self._benches if bench.why), "")
            if bool(why) == self._told:
                continue
            try:
                async with self._database.write() as session:
                    if why:
                        await quarantine_worker(session, self._worker_id, why, [pool.value for pool in self._aside()])
                    else:
                        await release_worker(session, self._worker_id)
                self._told = bool(why)
            except Exception as error:
                log.warning("the mirror does not know yet whether this worker is set aside: %s", error)
                self._news.set()
                await asyncio.sleep(AGAIN_S)


def _said(error: Exception) -> str:
    return error.sentence if isinstance(error, VlogError) else type(error).__name__
