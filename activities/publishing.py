"""From verified renditions to something a player can open: playlists first, then the names that point at them."""

from itertools import count

from temporalio import activity

from contracts.end_steps import Publish, Published, WriteManifests
from contracts.errors import NoPicture
from contracts.ids import ObjectKey
from contracts.layout import MASTER, MPD, PLAYLIST, earlier_prefixes, segment_index, video_prefix
from media import manifests
from mirror import reads, writes
from mirror.sessions import Database
from storage.store import Store


class ManifestSteps:
    def __init__(self, store: Store) -> None:
        self._store = store

    @activity.defn
    async def write_manifests(self, request: WriteManifests) -> None:
        """Write each rendition's own playlist into its folder.

        Safe to repeat: the text follows from the request and from what is stored for good, and no manifest points at
        it yet.
        """
        for video in request.renditions.video:
            await self._put(video.prefix + PLAYLIST, manifests.media_playlist_video(video))
            # Who watched it grow before it started anew asks there for the rest.
            for earlier in earlier_prefixes(video.prefix):
                if stored := await self._stored(earlier):
                    await self._put(earlier + PLAYLIST, manifests.continued_video(video, earlier, stored))
        segment_s = request.grid.segment_frames / request.grid.frame_rate.fraction
        for audio in request.renditions.audio:
            await self._put(audio.prefix + PLAYLIST, manifests.media_playlist_audio(audio, segment_s))
            for earlier in earlier_prefixes(audio.prefix):
                if stored := await self._stored(earlier):
                    await self._put(earlier + PLAYLIST, manifests.continued_audio(audio, segment_s, earlier, stored))

    async def _stored(self, prefix: str) -> int:
        """Count a folder's segments from the start without a gap."""
        found = {segment_index(facts.key) for facts in await self._store.list(prefix)}
        return next(index for index in count() if index not in found)

    async def _put(self, key: str, text: str) -> None:
        await self._store.put_bytes(key, text.encode())


class PublishSteps:
    def __init__(self, store: Store, database: Database) -> None:
        self._store, self._database = store, database

    @activity.defn
    async def publish(self, request: Publish) -> Published:
        """Record the renditions, then put master.m3u8 and manifest.mpd in their place.

        Safe to repeat: rows are upserted, and the manifests are built from the rows, so that renditions of
        earlier jobs which this one keeps stay listed. Each file is replaced whole: who plays the old stream
        goes on playing it, since its segments are removed only after a grace. The job's row is held meanwhile,
        and of a job that has ended nothing is written: a late attempt cannot bring back what a newer job replaced.
        """
        prefix = video_prefix(request.slug)
        master, mpd = ObjectKey(prefix + MASTER), ObjectKey(prefix + MPD)
        async with self._database.write() as session:
            if await writes.record_renditions(
                session, request.job_id, request.video_id, request.renditions, request.keep
            ):
                current = await reads.renditions(session, request.video_id)
                if not current.video:  # it is tried until it is done, and this never would be
                    raise NoPicture("Nothing of the picture could be made.")
                await self._store.put_bytes(mpd, manifests.dash_manifest(current, prefix).encode())
                await self._store.put_bytes(master, manifests.master_playlist(current, prefix).encode())
        return Published(master_key=master, mpd_key=mpd)
