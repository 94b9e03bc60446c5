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
    TIMELINE,
    audio_prefix,
    rendition_prefix,
    segment_index,
    segment_name,
    video_prefix,
)
from contracts.media import AudioTimeline, PlannedAudio, PlannedRendition
from media.growing import GrowingRung, GrowingTrack, growing_master, rung_playlist, track_playlist
from mirror.reads_growing import GrowingJob, growing_job
from storage.store import Store

log = structlog.get_logger(__name__)

LOOK_EVERY_S = 1.0
MOST_WATCHED = 64  # the playlists of a long film are half a megabyte


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
        return (await watched.texts(parts)).get(path)


class _Watched:
    """One video: the playlists of the last look, and what a look need not find out again."""

    def __init__(self, slug: str) -> None:
        self._slug = slug
        self._looking = asyncio.Lock()
        self._looked_at = float("-inf")
        self._texts: dict[str, str] = {}
        self._job: GrowingJob | None = None
        self._forget()

    def _forget(self) -> None:
        self._counts: dict[str, int] = {}
        self._timelines: dict[str, AudioTimeline] = {}
        self._inits: dict[str, bytes] = {}

    async def texts(self, parts: Parts) -> dict[str, str]:
        """Give every playlist there is, by its path below the video."""
        async with self._looking:  # whoever comes meanwhile waits for this look instead of starting another
            if time.monotonic() >= self._looked_at + LOOK_EVERY_S:
                self._texts = await self._look(parts)
                self._looked_at = time.monotonic()
            return self._texts

    async def _look(self, parts: Parts) -> dict[str, str]:
        job = await self._find_job(parts)
        if job is None:
            return {}
        # The lowest first: a rung that was counted before it would look like a laggard.
        rungs = [await self._rung(parts.store, job, planned) for planned in reversed(job.plan.renditions)][::-1]
        tracks = [await self._track(parts.store, job, planned) for planned in job.plan.audio]
        prefix, grid = video_prefix(self._slug), job.plan.grid
        found = {MASTER: growing_master(grid, rungs, tracks, prefix)}
        found |= {rung.prefix.removeprefix(prefix) + PLAYLIST: rung_playlist(grid, rung.segments) for rung in rungs}
        found |= {
            track.prefix.removeprefix(prefix) + PLAYLIST: track_playlist(grid, track.timeline) for track in tracks
        }
        return {path: text for path, text in found.items() if text is not None}

    async def _find_job(self, parts: Parts) -> GrowingJob | None:
        try:
            async with parts.database.read() as session:
                job = await growing_job(session, self._slug)
        except Exception as error:
            if not is_database_away(error):
                raise
            # What plays goes on playing, and growing, while Postgres is away.
            log.warning("growing_without_database", slug=self._slug)
            if self._job is None:
                raise database_away() from error
            return self._job
        if job is None or self._job is None or job.job_id != self._job.job_id:
            self._forget()
        self._job = job
        return job

    async def _rung(self, store: Store, job: GrowingJob, planned: PlannedRendition) -> GrowingRung:
        prefix = rendition_prefix(self._slug, job.output, planned.quality, planned.generation)
        count = self._counts.get(prefix, 0)
        if not count:
            stored = {segment_index(facts.key) for facts in await store.list(prefix)}
            while count in stored:
                count += 1
        else:
            # What was there stays there: only the end is looked at, however long the film.
            while count < job.plan.grid.segments and await store.stat(prefix + segment_name(count)):
                count += 1
        self._counts[prefix] = count
        init = await self._init(store, prefix) if count else None
        return GrowingRung(planned, prefix, count, init)

    async def _track(self, store: Store, job: GrowingJob, planned: PlannedAudio) -> GrowingTrack:
        prefix = audio_prefix(self._slug, job.output, planned.track)
        known = self._timelines.get(prefix)
        if (known is None or not known.whole) and await store.stat(prefix + TIMELINE):
            found = AudioTimeline.model_validate_json(await store.read_bytes(prefix + TIMELINE))
            if known is None or found.segments >= known.segments:
                self._timelines[prefix] = known = found
        init = await self._init(store, prefix) if known and known.segments else None
        return GrowingTrack(planned, prefix, known, init)

    async def _init(self, store: Store, prefix: str) -> bytes:
        """Read an init segment, once: it is stored before the first segment, and never changed."""
        if prefix not in self._inits:
            self._inits[prefix] = await store.read_bytes(prefix + INIT)
        return self._inits[prefix]
