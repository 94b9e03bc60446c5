"""Workers that fell silent."""

from temporalio import activity

from contracts.housekeeping import ChoreDone, KeepHouse
from mirror.chores_workers import mark_silent_workers_offline
from mirror.sessions import Database


class WorkersChore:
    def __init__(self, database: Database, *, silent_s: float) -> None:
        self._database, self._silent_s = database, silent_s

    @activity.defn
    async def mark_silent_workers(self, request: KeepHouse) -> ChoreDone:
        """Mark workers offline that have not been heard from for `VLOG_WORKER_OFFLINE_THRESHOLD_MINUTES`.

        Safe to repeat: one conditional UPDATE, which an offline worker no longer fits. Beside a heartbeat: whichever
        is written second sees the other, and a beat always ends with the worker alive.
        """
        async with self._database.write() as session:
            gone = await mark_silent_workers_offline(session, silent_s=self._silent_s)
        return ChoreDone(count=len(gone))
