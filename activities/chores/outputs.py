"""Renditions that nothing names any more: replaced by a retranscode, started anew, or left by jobs long ended."""

from temporalio import activity

from contracts.errors import VlogError
from contracts.housekeeping import ChoreDone, KeepHouse
from contracts.layout import video_prefix
from mirror.chores_files import NeededOutputs, needed_outputs, videos_to_look_at
from mirror.sessions import Database
from storage.store import Store

AT_ONCE = 10
HALF_WRITTEN_S = 24 * 3600.0


class OutputsChore:
    def __init__(self, database: Database, store: Store, *, grace_s: float) -> None:
        self._database, self._store, self._grace_s = database, store, grace_s

    @activity.defn
    async def remove_outputs(self, request: KeepHouse) -> ChoreDone:
        """Remove folders that no rendition's row and no job names, a grace after the video's last job ended.

        The grace is `VLOG_OLD_RENDITION_GRACE_SECONDS`.

        Safe to repeat: what is named stays, what is gone is gone. Beside jobs: a video with an unfinished one is left
        alone. Beside rows that were lost, and come back one job after the other: an output that is newer than every
        job is left alone. Beside a retry or a retranscode that begins right now: the video's row is locked until the
        folders are gone, a new job waits for it, and the output that a retry inherits is never removed.
        """
        async with self._database.write() as session:
            chosen = await videos_to_look_at(session, grace_s=self._grace_s, limit=AT_ONCE)
        removed, failed = 0, None
        for video_id in chosen:
            async with self._database.write() as session:
                needed = await needed_outputs(session, video_id, grace_s=self._grace_s)
                if needed is not None:
                    try:
                        removed += await self._remove(needed)
                    except VlogError as error:  # of this video: the others do not wait for it
                        failed = error
        if failed is not None:
            raise failed
        return ChoreDone(count=removed)

    async def _remove(self, needed: NeededOutputs) -> int:
        removed, here = 0, video_prefix(needed.slug)
        for output in filter(needed.knows, await self._store.folders(here)):
            base = f"{here}{output}/"
            folders = {f"{base}{name}/" for name in await self._store.folders(base)}
            over = {folder for folder in folders - needed.prefixes if _is_over(folder, output, needed)}
            for folder in sorted(over):
                await self._store.delete_prefix(folder)
                removed += 1
            if folders == over and output not in needed.outputs:
                await self._store.delete_prefix(base)
        return removed + await self._store.remove_unfinished(here, older_than_s=HALF_WRITTEN_S)


def _is_over(folder: str, output: str, needed: NeededOutputs) -> bool:
    """Tell a folder that nobody will use. Where a retry may go on, only what was started anew beside it is over."""
    return output not in needed.outputs or any(
        prefix.startswith(f"{folder.rstrip('/').partition('.')[0]}.") for prefix in needed.prefixes
    )
