"""Workers that fell silent, and those that will not be heard of again."""

from temporalio import activity

from contracts.housekeeping import ChoreDone, KeepHouse
from mirror.chores_workers import forget_long_silent_workers, mark_silent_workers_offline
from mirror.sessions import Database


class WorkersChore:
    def __init__(self, database: Database, *, silent_s: float) -> None:
        self._database, self._silent_s = database, silent_s

    @activity.defn
    async def mark_silent_workers(self, request: KeepHouse) -> ChoreDone:
        """Mark workers offline that have not been heard from for `VLOG_WORKER_OFFLINE_THRESHOLD_MINUTES`.

        Local ones that stayed so for a week are forgotten. Safe to repeat: one conditional UPDATE, which an offline
        worker no longer fits, and a DELETE. Beside a heartbeat: whichever is written second sees the other, and a
        beat always ends with the worker alive; one that was forgotten registers itself anew.
        """
        async with self._database.write() as session:
            gone = await mark_silent_workers_offline(session, silent_s=self._silent_s)
        async with self._database.write() as session:
            forgotten = await forget_long_silent_workers(session)
        return ChoreDone(count=len(gone) + len(forgotten))
