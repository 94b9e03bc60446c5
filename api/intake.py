"""The one way in. Every upload, however it arrives, becomes bytes first, then rows, then a workflow.

Bytes are made durable before a row names them; a row is committed before a workflow is started. So a
crash at any point leaves at most bytes that no row names, never a video without its source.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import structlog

from api.announcing import pass_over_stored
from api.errors import ApiError, database_away, is_database_away
from api.fields import Details, clean_filename, extension_of, title_from
from api.parts import Parts
from contracts.errors import SourceEmpty, VlogError
from contracts.ids import JobId, ObjectKey, VideoId
from contracts.layout import source_key, video_prefix
from contracts.states import VideoStatus
from contracts.steps import TranscodeRequest
from mirror import reads, uploads, writes
from mirror.writes import CreatedVideo, NewVideo
from mirror.writes_intake import VideoExists
from storage.store import ObjectWriter

log = structlog.get_logger(__name__)

BUFFER_BYTES = 1 << 20  # fewer, larger writes: each one is a trip to a thread
RECORD_TRIES = 5


class Source:
    """One file on its way in: counted, limited, and gone again unless kept."""

    def __init__(self, video_id: VideoId, filename: str, writer: ObjectWriter, limit_bytes: int) -> None:
        self.video_id, self.filename = video_id, filename
        self.size_bytes = 0
        self._writer, self._limit_bytes = writer, limit_bytes
        self._buffer = bytearray()

    @property
    def key(self) -> ObjectKey:
        return source_key(self.video_id, extension_of(self.filename))

    async def write(self, chunk: bytes) -> None:
        self.size_bytes += len(chunk)
        if self.size_bytes > self._limit_bytes:
            raise too_large(self._limit_bytes)
        self._buffer += chunk
        if len(self._buffer) >= BUFFER_BYTES:
            await self._flush()

    async def keep(self) -> None:
        """Make the bytes durable under their key; an empty file is refused and leaves nothing."""
        if self.size_bytes == 0:
            raise SourceEmpty("The file is empty.")
        await self._flush()
        await self._writer.commit()

    async def _flush(self) -> None:
        await self._writer.write(bytes(self._buffer))
        self._buffer.clear()


def too_large(limit_bytes: int) -> ApiError:
    return ApiError(413, "UPLOAD_TOO_LARGE", f"A file may have at most {limit_bytes} bytes.")


class Intake:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def repeated(self, idempotency_key: str | None) -> CreatedVideo | None:
        """Find the first answer to a key that was used before."""
        if idempotency_key is None:
            return None
        async with self._parts.database.read() as session:
            return await reads.idempotent(session, idempotency_key)

    @asynccontextmanager
    async def source(self, filename: str | None) -> AsyncIterator[Source]:
        """Open a new source; its number is taken before its first byte, so its key never changes."""
        name = clean_filename(filename)
        video_id, key = await self.free_key(name)
        async with self._parts.store.writer(key) as writer:
            yield Source(video_id, name, writer, self._parts.settings.max_upload_size)

    async def free_key(self, name: str) -> tuple[VideoId, ObjectKey]:
        """Take a number whose source is not stored yet; a database that was restored gives some twice."""
        while True:
            async with self._parts.database.write() as session:
                video_id = await writes.next_video_id(session)
            key = source_key(video_id, extension_of(name))
            if await self._parts.store.stat(key) is None:
                return video_id, key
            await pass_over_stored(self._parts.database, self._parts.store)

    async def accept(self, source: Source, details: Details, idempotency_key: str | None) -> CreatedVideo:
        """Keep the bytes, record video and job together, and start; a start that fails is caught up later."""
        await source.keep()
        new = self._new_video(source, details, idempotency_key)
        video = await self.admit(new)
        if video.repeated:
            # Two requests with one Idempotency-Key: the other was first, its answer counts.
            with suppress(VlogError):  # then housekeeping finds them
                await self._parts.store.delete(source.key)
        return video

    async def admit(self, new: NewVideo, *, upload_id: str | None = None) -> CreatedVideo:
        """Record a video whose bytes are durable, note of which upload it was made, and start it."""
        video = await self._record(new, upload_id)
        if video.repeated:
            return video
        log.info("video_accepted", video_id=video.video_id, job_id=video.job_id, size_bytes=new.source_size_bytes)
        try:
            await self._parts.starter.start(video.request, new.title)
        except Exception as error:
            # The rows are committed: whatever happened to the start, the upload has succeeded.
            log.warning("start_left_to_the_starter", video_id=video.video_id, error=str(error) or type(error).__name__)
        return video

    async def _record(self, new: NewVideo, upload_id: str | None) -> CreatedVideo:
        """Write the rows, through a short absence of Postgres: the bytes took long to get here."""
        for attempt in range(RECORD_TRIES):
            if attempt:
                await asyncio.sleep(0.5 * 2**attempt)
            try:
                if attempt and (video := await self._recorded(new)):
                    return video
                async with self._parts.database.write() as session:
                    video = await writes.create_video(session, new, self._is_used)
                    if upload_id is not None:
                        keep_s = self._parts.settings.upload_expiry_hours * 3600
                        await uploads.finish_upload(session, upload_id, video.video_id, keep_s=keep_s)
                    return video
            except Exception as error:
                if not is_database_away(error):
                    if not isinstance(error, VideoExists):  # whose bytes these are
                        with suppress(VlogError):  # then housekeeping finds them
                            await self._parts.store.delete(new.source_key)
                    raise
                log.warning("database_unavailable_at_intake", video_id=new.video_id, error=type(error).__name__)
        # The bytes stay: a commit whose answer was lost may have named them.
        raise database_away()

    async def _is_used(self, slug: str) -> bool:
        """Tell whether a video's streams lie under this slug: those of one that the database has lost."""
        return bool(await self._parts.store.folders(video_prefix(slug)))

    async def _recorded(self, new: NewVideo) -> CreatedVideo | None:
        """Ask whether a commit whose answer was lost went through after all."""
        async with self._parts.database.read() as session:
            video = await reads.video(session, new.video_id)
        if video is None or video.job_id is None:
            return None
        request = TranscodeRequest(
            video_id=new.video_id,
            job_id=JobId(video.job_id),
            slug=video.slug,
            source_key=new.source_key,
            source_size_bytes=new.source_size_bytes,
            qualities=new.qualities,
            owner=new.owner,
            tier=new.tier,
            max_attempts=new.max_attempts,
        )
        return CreatedVideo(new.video_id, request.job_id, video.slug, VideoStatus.PENDING, request)

    def _new_video(self, source: Source, details: Details, idempotency_key: str | None) -> NewVideo:
        return NewVideo(
            video_id=source.video_id,
            title=details.title or title_from(source.filename),
            source_key=source.key,
            source_filename=source.filename,
            source_size_bytes=source.size_bytes,
            description=details.description,
            owner=details.owner,
            tier=details.waits_as,
            qualities=details.qualities,
            max_attempts=self._parts.settings.max_retry_attempts,
            idempotency_key=idempotency_key,
        )
