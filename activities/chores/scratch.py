"""What killed processes left half-made in storage."""

from temporalio import activity

from contracts.housekeeping import ChoreDone, KeepHouse
from storage.store import Store

HALF_UPLOAD_S = 24 * 3600.0
AT_ONCE = 100


class ScratchChore:
    def __init__(self, store: Store) -> None:
        self._store = store

    @activity.defn
    async def remove_scratch(self, request: KeepHouse) -> ChoreDone:
        """Remove scratch of dead processes, and uploads that broke off a day ago.

        Safe to repeat: what is gone is gone. Beside a running step: its process keeps its scratch locked, so only a
        dead one's is taken. Beside an upload under way: each byte that arrives makes it young again.
        """
        scratch = await self._store.remove_abandoned(limit=AT_ONCE)
        uploads = await self._store.remove_unfinished("uploads/", older_than_s=HALF_UPLOAD_S)
        return ChoreDone(count=scratch + uploads)
