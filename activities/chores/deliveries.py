"""Deliveries to webhooks: started where no API lives, started again when Temporal forgot them, dropped when old."""

from temporalio import activity

from contracts.housekeeping import ChoreDone, KeepHouse
from mirror.deliveries import DeliveryOutbox, forget_old
from mirror.sessions import Database


class DeliveriesChore:
    def __init__(self, database: Database, outbox: DeliveryOutbox) -> None:
        self._database, self._outbox = database, outbox

    @activity.defn
    async def carry_deliveries(self, request: KeepHouse) -> ChoreDone:
        """Start what waits, start again what Temporal lost, forget what ended a month ago.

        Safe to repeat: a delivery's workflow has its id, so a second start is the first one. Beside an API that
        does the same: one decides about the rate limit at a time.
        """
        carried = await self._outbox.start_waiting() + await self._outbox.start_overdue()
        async with self._database.write() as session:
            return ChoreDone(count=carried + await forget_old(session))
