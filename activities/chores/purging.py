"""Videos that were deleted long ago, for good."""

from temporalio import activity

from contracts.errors import VlogError
from contracts.housekeeping import ChoreDone, KeepHouse
from contracts.layout import video_prefix
from mirror.chores_files import begin_purge, end_purge, to_purge
from mirror.sessions import Database
from storage.store import Store

AT_ONCE = 20


class PurgingChore:
    def __init__(self, database: Database, store: Store, *, retention_s: float) -> None:
        self._database, self._store, self._retention_s = database, store, retention_s

    @activity.defn
    async def purge_videos(self, request: KeepHouse) -> ChoreDone:
        """Remove source, renditions and rows of videos deleted `VLOG_ARCHIVE_RETENTION_DAYS` ago; the slug stays taken.

        Safe to repeat: decided first, bytes next, rows last, and one that was cut short is found again. Beside a
        restore: either it comes first and the video stays, or the video is marked purged and no restore fits.
        Beside a job that is still being cancelled: the next run looks again, as it does at one whose files could not be
        removed, which keeps no other waiting.
        """
        async with self._database.read() as session:
            found = await to_purge(session, retention_s=self._retention_s, limit=AT_ONCE)
        purged, failed = 0, None
        for video_id in found:
            async with self._database.write() as session:
                begun = await begin_purge(session, video_id, retention_s=self._retention_s)
            if begun is None:
                continue
            slug, source_key = begun
            try:
                await self._store.delete_prefix(video_prefix(slug))
                await self._store.delete(source_key)
            except VlogError as error:
                failed = error
                continue
            async with self._database.write() as session:
                await end_purge(session, video_id)
            purged += 1
        if failed is not None:
            raise failed
        return ChoreDone(count=purged)
