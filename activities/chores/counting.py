"""The event log, added up, so that /metrics need not read all of it."""

from temporalio import activity

from contracts.housekeeping import ChoreDone, KeepHouse
from mirror.counting import count_settled
from mirror.sessions import Database


class CountingChore:
    def __init__(self, database: Database) -> None:
        self._database = database

    @activity.defn
    async def count_events(self, request: KeepHouse) -> ChoreDone:
        """Add up the lines that have settled.

        Safe to repeat: how far it has come is written in the same transaction. It mends nothing, so it counts for
        nothing.
        """
        async with self._database.write() as session:
            await count_settled(session)
        return ChoreDone()
