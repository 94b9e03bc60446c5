"""From a committed job to a running workflow, as soon as Temporal lets us.

The upload tries once; the loop here tries what is left over, every few seconds; housekeeping does so when no API
lives (mirror/outbox.py is the one way for all of them).
"""

import asyncio
import time

import structlog
from temporalio.client import Client
from temporalio.service import RPCError

from contracts.starting import Start
from contracts.steps import TranscodeRequest
from mirror.outbox import Outbox
from mirror.sessions import Database
from runtime.temporal import ensure_search_attributes
from workflows.starting import START_S, TranscodeStarter

__all__ = ["Start", "Starter"]

log = structlog.get_logger(__name__)

EVERY_S = 3.0
# Temporal's frontends learn new search attributes from a cache: until then a refusal may only mean "not yet".
SETTLE_S = 60.0


class Starter:
    def __init__(
        self,
        database: Database,
        temporal: Client,
        *,
        heartbeat_timeout_s: float = 30.0,
        critical: tuple[str, ...] = (),
        every_s: float = EVERY_S,
        settle_s: float = SETTLE_S,
    ) -> None:
        self._temporal, self._every_s, self._settle_s = temporal, every_s, settle_s
        self._prepared_at: float | None = None
        hand_over = TranscodeStarter(
            temporal, heartbeat_timeout_s=heartbeat_timeout_s, critical=critical, settled=self._settled
        )
        self._outbox = Outbox(database, hand_over)

    async def start(self, request: TranscodeRequest, title: str) -> Start:
        """Start one job's workflow and say so in the mirror; never raises for a Temporal that is away."""
        return await self._outbox.start(request, title)

    async def start_left_over(self, *, older_than_s: float | None = None) -> int:
        return await self._outbox.start_left_over(older_than_s=older_than_s)

    def _settled(self) -> bool:
        return self._prepared_at is not None and time.monotonic() - self._prepared_at >= self._settle_s

    async def prepare(self) -> None:
        """Register, once, what workflows are searched by: Temporal refuses a start that names an unknown attribute."""
        if self._prepared_at is not None:
            return
        try:
            async with asyncio.timeout(START_S):
                # Where an administrator registers them they may be missing: no refusal is the video's fault then.
                known = await ensure_search_attributes(self._temporal)
        except (TimeoutError, RuntimeError, RPCError):
            return
        if known:
            self._prepared_at = time.monotonic()

    async def run(self) -> None:
        """Look for left-over jobs until cancelled; whatever goes wrong, look again."""
        while True:
            try:
                await self.prepare()
                started = await self.start_left_over()
                if started:
                    log.info("left_over_jobs_started", jobs=started)
            except Exception as error:
                reason = next(iter(str(error).splitlines()), "") or type(error).__name__  # the rest is SQL
                log.warning("looking_for_left_over_jobs_failed", error=reason)
            await asyncio.sleep(self._every_s)
