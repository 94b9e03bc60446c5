"""Uploads that were begun and never finished in time."""

from temporalio import activity

from contracts.housekeeping import ChoreDone, KeepHouse
from mirror.chores_files import forget_expired_uploads
from mirror.sessions import Database
from storage.store import ResumableStore, Store

AT_ONCE = 100


class UploadsChore:
    def __init__(self, database: Database, store: Store) -> None:
        self._database, self._store = database, store

    @activity.defn
    async def remove_expired_uploads(self, request: KeepHouse) -> ChoreDone:
        """Drop uploads whose time is over, and their bytes unless they became a video.

        Safe to repeat: a dropped row is gone. Beside an upload that finishes: one that is being written is skipped,
        and one that was dropped first cannot become a video. Bytes go before the row: cut short, both are found again.
        """
        async with self._database.write() as session:
            keys = await forget_expired_uploads(session, limit=AT_ONCE)
            for key in keys:
                if isinstance(self._store, ResumableStore):
                    await self._store.forget(key)
                await self._store.delete(key)
        return ChoreDone(count=len(keys))
