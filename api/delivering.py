"""From a committed event to whoever wants to hear of it. Where no API lives, housekeeping does the same."""

import asyncio

import structlog
from temporalio.client import Client

from mirror.deliveries import DeliveryOutbox
from mirror.sessions import Database
from workflows.delivering import DeliveryStarter

log = structlog.get_logger(__name__)

EVERY_S = 2.0


class Deliverer:
    def __init__(self, database: Database, temporal: Client, *, every_s: float = EVERY_S) -> None:
        self._outbox = DeliveryOutbox(database, DeliveryStarter(temporal))
        self._every_s = every_s

    async def run(self) -> None:
        """Start what waits until cancelled; whatever goes wrong, look again."""
        while True:
            try:
                if started := await self._outbox.start_waiting():
                    log.info("deliveries_started", deliveries=started)
            except Exception as error:
                reason = next(iter(str(error).splitlines()), "") or type(error).__name__  # the rest is SQL
                log.warning("looking_for_deliveries_failed", error=reason)
            await asyncio.sleep(self._every_s)
