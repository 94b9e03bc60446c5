"""Uploads that were begun and never finished in time."""

from temporalio import activity

from contracts.errors import ObjectBusy
from contracts.housekeeping import ChoreDone, KeepHouse
from mirror.chores_files import expired_uploads, forget_expired_upload
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
        async with self._database.read() as session:
            over = await expired_uploads(session, limit=AT_ONCE)
        # One by one: what is being written keeps its own row and no other.
        return ChoreDone(count=sum([await self._remove(upload_id) for upload_id in over]))

    async def _remove(self, upload_id: str) -> bool:
        try:
            async with self._database.write() as session:
                key = await forget_expired_upload(session, upload_id)
                if key is None:
                    return False
                if isinstance(self._store, ResumableStore):
                    await self._store.forget(key)
                await self._store.delete(key)
        except ObjectBusy:
            return False
        return True
