"""Playlists of a video that is still being encoded, from what is stored without a gap.

However many people watch, a video is looked at once a second; whatever publish has written wins over this.
"""

import asyncio
import time
from collections import OrderedDict

import structlog

from api.errors import database_away, is_database_away
from api.parts import Parts
from contracts.layout import (
    INIT,
    MASTER,
    PLAYLIST,
    TIMELINES,
    audio_prefix,
    rendition_prefix,
    segment_index,
    segment_name,
    subtitles_prefix,
    video_prefix,
)
from contracts.plan import PlannedAudio, PlannedRendition
from contracts.renditions import AudioTimeline
from media.growing import GrowingRung, GrowingTrack, RungPlaylist, StoredText, TrackPlaylist, growing_master
from media.manifests import folder_beside
from mirror.reads_growing import GrowingJob, growing_job
from storage.store import Store

log = structlog.get_logger(__name__)

LOOK_EVERY_S = 1.0
MOST_WATCHED = 64  # the playlists of a long film are half a megabyte
FEW = 16  # segments that are looked at one by one: in a bucket each costs some 20 ms


class Growing:
    """The videos that were asked for lately."""

    def __init__(self) -> None:
        self._watched: OrderedDict[str, _Watched] = OrderedDict()

    async def playlist(self, parts: Parts, slug: str, path: str) -> str | None:
        """Write one playlist as it is now; None when it is not one, or nothing of it can be played yet."""
        if path != MASTER and not path.endswith(f"/{PLAYLIST}"):
            return None
        watched = self._watched.setdefault(slug, _Watched(slug))
        self._watched.move_to_end(slug)
        while len(self._watched) > MOST_WATCHED:
            self._watched.popitem(last=False)
        return await watched.playlist(parts, path)


class _Watched:
    """One video: the playlists of the last look, and what a look need not find out again.

    A look costs what has come since the last one, of the playlist that is asked for, however long the film.
    """

    def __init__(self, slug: str) -> None:
        self._slug = slug
        self._looking = asyncio.Lock()
        self._job: GrowingJob | None = None
        self._forget()

    def _forget(self) -> None:
        self._looked: dict[str, float] = {}  # when, by what was looked at: a path, a folder, the job
        self._counts: dict[str, int] = {}
        self._timelines: dict[str, AudioTimeline] = {}
        self._etags: dict[str, str] = {}  # of timelines that have been read
        self._inits: dict[str, bytes] = {}
        self._rungs: dict[str, RungPlaylist] = {}
        self._tracks: dict[str, TrackPlaylist] = {}
        self._master: str | None = None
        self._texts_there: set[str] = set()

    def _is_due(self, what: str) -> bool:
        now = time.monotonic()
        if now < self._looked.get(what, float("-inf")) + LOOK_EVERY_S:
            return False
        self._looked[what] = now
        return True

    async def playlist(self, parts: Parts, path: str) -> str | None:
        async with self._looking:  # whoever comes meanwhile waits for this look instead of starting another
            job = await self._find_job(parts)
            if job is None:
                return None
            if path == MASTER:
                if self._is_due(MASTER):
                    self._master = await self._write_master(parts.store, job)
                return self._master
            folder = video_prefix(self._slug) + path.removesuffix(PLAYLIST)
            for planned in job.rungs:
                folders = self._generations(job, planned)
                if folder in folders:
                    return (await self._rung_playlist(parts.store, job, folders[folders.index(folder) :])).text()
            for track in job.plan.audio:
                folders = self._sound_generations(job, track)
                if folder in folders:
                    return (await self._track_playlist(parts.store, job, folders[folders.index(folder) :])).text()
            return None

    async def _find_job(self, parts: Parts) -> GrowingJob | None:
        if not self._is_due("job"):
            return self._job
        try:
            async with parts.database.read() as session:
                job = await growing_job(session, self._slug)
        except Exception as error:
            if not is_database_away(error):
                raise
            # What plays goes on playing, and growing, while Postgres is away.
            log.warning("growing_without_database", slug=self._slug)
            if self._job is None:
                del self._looked["job"]
                raise database_away() from error
            return self._job
        if job is None or self._job is None or job.job_id != self._job.job_id:
            self._forget()
            self._is_due("job")
        self._job = job
        return job

    async def _write_master(self, store: Store, job: GrowingJob) -> str | None:
        # The lowest first: a rung that was counted before it would look like a laggard.
        rungs = [await self._rung(store, job, planned) for planned in reversed(job.rungs)][::-1]
        tracks = [await self._track(store, job, planned) for planned in job.sounds]
        texts = await self._stored_texts(store, job)
        return growing_master(job.plan.grid, rungs, tracks, video_prefix(self._slug), texts)

    def _generations(self, job: GrowingJob, planned: PlannedRendition) -> list[str]:
        """Name the folders of a rung, oldest first: it has several when it started anew."""
        numbers = range(planned.generation + 1)
        return [rendition_prefix(self._slug, job.output, planned.quality, number) for number in numbers]

    async def _rung(self, store: Store, job: GrowingJob, planned: PlannedRendition) -> GrowingRung:
        folders = self._generations(job, planned)
        newest = folders[-1]
        segments = await self._count(store, job, newest)
        if len(folders) > 1:
            # Until the new one has caught up, who comes is shown the old one, which goes on in the new.
            continued = (await self._rung_playlist(store, job, folders)).segments
            if continued > segments + 1:
                begun = next(folder for folder in folders if self._counts[folder])
                return GrowingRung(planned, folders[0], continued, await self._init(store, begun))
        init = await self._init(store, newest) if segments else None
        return GrowingRung(planned, newest, segments, init)

    async def _rung_playlist(self, store: Store, job: GrowingJob, folders: list[str]) -> RungPlaylist:
        """Bring the playlist of a folder, and of those that follow it, to where they are now."""
        playlist = self._rungs.setdefault(folders[0], RungPlaylist(job.plan.grid))
        there = [(folder_beside(folders[0], folder), await self._count(store, job, folder)) for folder in folders]
        playlist.extend(there)
        return playlist

    async def _count(self, store: Store, job: GrowingJob, prefix: str) -> int:
        """Count a folder's segments from the start without a gap."""
        count = self._counts.get(prefix, 0)
        if not self._is_due(prefix):
            return count
        whole = job.plan.grid.segments
        # What was there stays there: only the end is looked at, however long the film.
        few = min(count + FEW, whole) if count else 0
        while count < few and await store.stat(prefix + segment_name(count)):
            count += 1
        if count == few and count < whole:  # it is the first look, or many have come since the last one
            stored = {segment_index(facts.key) for facts in await store.list(prefix)}
            while count in stored:
                count += 1
        self._counts[prefix] = count
        return count

    def _sound_generations(self, job: GrowingJob, planned: PlannedAudio) -> list[str]:
        numbers = range(planned.generation + 1)
        return [audio_prefix(self._slug, job.output, planned.track, number) for number in numbers]

    async def _track(self, store: Store, job: GrowingJob, planned: PlannedAudio) -> GrowingTrack:
        folders = self._sound_generations(job, planned)
        newest = folders[-1]
        known = await self._timeline(store, newest)
        if len(folders) > 1:  # as for a rung: the old one, until the new one has caught up
            playlist = await self._track_playlist(store, job, folders)
            if playlist.segments > (known.segments if known else 0) + 1:
                begun = next(folder for folder in folders if folder in self._timelines)
                return GrowingTrack(planned, folders[0], self._timelines[begun], await self._init(store, begun))
        init = await self._init(store, newest) if known and known.segments else None
        return GrowingTrack(planned, newest, known, init)

    async def _track_playlist(self, store: Store, job: GrowingJob, folders: list[str]) -> TrackPlaylist:
        """Bring the playlist of a folder, and of those that follow it, to where they are now."""
        playlist = self._tracks.setdefault(folders[0], TrackPlaylist(job.plan.grid))
        playlist.extend(
            [(folder_beside(folders[0], folder), await self._timeline(store, folder)) for folder in folders]
        )
        return playlist

    async def _timeline(self, store: Store, prefix: str) -> AudioTimeline | None:
        """Give the furthest that any attempt has told of a track."""
        known = self._timelines.get(prefix)
        if (known is None or not known.whole) and self._is_due(prefix):
            for facts in await store.list(prefix + TIMELINES):
                if self._etags.get(facts.key) != facts.etag:
                    told = AudioTimeline.model_validate_json(await store.read_bytes(facts.key))
                    self._etags[facts.key] = facts.etag
                    if told.is_further_than(known):
                        self._timelines[prefix] = known = told
        return known

    async def _stored_texts(self, store: Store, job: GrowingJob) -> list[StoredText]:
        """Name the subtitles that are there; their playlists are files, whole from the beginning."""
        found = []
        for planned in job.plan.subtitles:
            prefix = subtitles_prefix(self._slug, job.output, planned.track)
            if prefix in self._texts_there or await store.stat(prefix + PLAYLIST):
                self._texts_there.add(prefix)
                found.append(StoredText(planned, prefix))
        return found

    async def _init(self, store: Store, prefix: str) -> bytes:
        """Read an init segment, once: it is stored before the first segment, and never changed."""
        if prefix not in self._inits:
            self._inits[prefix] = await store.read_bytes(prefix + INIT)
        return self._inits[prefix]
