"""What killed processes left half-made in storage, and what no row names because its intake was killed."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from temporalio import activity

from contracts.errors import ObjectBusy
from contracts.housekeeping import ChoreDone, KeepHouse
from contracts.layout import REMUXED, UPLOADS, remuxed_job, source_video
from mirror.chores_files import ended_jobs, unknown_videos
from mirror.sessions import AnySession, Database
from storage.store import ResumableStore, Store

HALF_UPLOAD_S = 24 * 3600.0
ROWLESS_S = 900.0
AT_ONCE = 100

Number = Callable[[str], int | None]
Choice = Callable[[AnySession, Sequence[int]], Awaitable[set[int]]]


class ScratchChore:
    def __init__(self, database: Database, store: Store) -> None:
        self._database, self._store = database, store

    @activity.defn
    async def remove_scratch(self, request: KeepHouse) -> ChoreDone:
        """Remove scratch of dead processes, half uploads, sources without a video, and copies of ended jobs.

        Safe to repeat: what is gone is gone. Beside a running step or an upload under way: its process keeps its
        files locked, so only a dead one's are taken; where locks do not reach, they must be a day old. Beside an
        intake that has kept its bytes and not yet written its rows: it has a quarter of an hour for that. Beside a
        storyboard that reads a copy after its job's end: a copy has a day.
        """
        removed = await self._store.remove_abandoned(limit=AT_ONCE)
        removed += await self._store.remove_unfinished(UPLOADS, older_than_s=HALF_UPLOAD_S)
        removed += await self._remove(source_video, UPLOADS, ROWLESS_S, unknown_videos)
        removed += await self._remove_pieces()
        return ChoreDone(count=removed + await self._remove(remuxed_job, REMUXED, HALF_UPLOAD_S, ended_jobs))

    async def _remove_pieces(self) -> int:
        """Remove pieces of uploads whose row is gone: dropped while somebody wrote, or by a restore."""
        if not isinstance(self._store, ResumableStore):
            return 0
        begun = await self._store.begun(older_than_s=HALF_UPLOAD_S)
        numbers = {key: number for key in begun if (number := source_video(key)) is not None}
        async with self._database.read() as session:
            over = await unknown_videos(session, list(numbers.values()))
        keys = [key for key, number in numbers.items() if number in over]
        for key in keys:
            with suppress(ObjectBusy):
                await self._store.forget(key)
        return len(keys)

    async def _remove(self, number_of: Number, prefix: str, older_than_s: float, chosen: Choice) -> int:
        """Remove old objects whose number the mirror chooses."""
        oldest = datetime.now(UTC) - timedelta(seconds=older_than_s)
        found = [facts for facts in await self._store.list(prefix) if facts.modified_at < oldest]
        numbers = {facts.key: number for facts in found if (number := number_of(facts.key)) is not None}
        async with self._database.read() as session:
            over = await chosen(session, list(numbers.values()))
        keys = [key for key, number in numbers.items() if number in over]
        for key in keys:
            await self._store.delete(key)
        return len(keys)
