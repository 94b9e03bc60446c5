"""The bytes of an upload that comes in pieces: one writer at a time, counted only when they would outlive a crash.

The row says how much is here; what lies in storage beyond that was never counted and is cut off. A crash costs at most
what came since the last count, a second's worth, and when all is here the upload becomes a video as any other does.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from api.errors import ApiError, away
from api.fields import title_from
from api.intake import BUFFER_BYTES, Intake
from api.parts import Parts
from api.tus_headers import Checksum
from contracts.errors import ObjectBusy, ObjectMissing
from contracts.ids import VideoId
from contracts.layout import source_video
from mirror import uploads
from mirror.uploads import UploadGone, UploadView
from mirror.writes import NewVideo
from mirror.writes_intake import VideoExists
from storage.store import ResumableStore, ResumableWriter

COUNT_EVERY_S = 1.0
KEEP_BYTES = 8 << 20
BUSY_S = 1.0  # the writer before may not have noticed yet that its client has gone


def upload_not_found() -> ApiError:
    return ApiError(404, "UPLOAD_NOT_FOUND", "There is no such upload.")


def interrupted() -> ApiError:
    return away("UPLOAD_INTERRUPTED", "Not all was counted. Please look, and go on from there.")


def offset_wrong(found: UploadView) -> ApiError:
    return ApiError(409, "OFFSET_WRONG", f"This upload goes on at byte {found.offset_bytes}.")


class Receiving:
    def __init__(self, parts: Parts) -> None:
        if not isinstance(parts.store, ResumableStore):
            raise ApiError(501, "UPLOADS_NOT_RESUMABLE", "This storage takes whole files only: use PUT /api/videos.")
        self._parts, self._store = parts, parts.store
        self._keep_s = parts.settings.upload_expiry_hours * 3600

    async def find(self, upload_id: str) -> UploadView:
        async with self._parts.database.read() as session:
            found = await uploads.upload(session, upload_id)
        if found is None:
            raise upload_not_found()
        if found.expired:
            raise ApiError(410, "UPLOAD_EXPIRED", "The time of this upload is over; please begin anew.")
        return found

    async def whole(self, upload_id: str) -> UploadView:
        """Look at an upload; one that is all here and was cut off before it became a video becomes one now."""
        await self._counted(upload_id)
        found = await self.find(upload_id)
        if not found.is_whole or found.video_id is not None:
            return found
        async with self._writing(found) as writer:
            found = await self.find(upload_id)
            return found if found.video_id is not None else await self._become_video(found, writer)

    async def receive(
        self, upload_id: str, offset: int, body: AsyncIterator[bytes], checksum: Checksum | None
    ) -> UploadView:
        """Take bytes behind `offset`; the last ones make it a video.

        With a checksum all of them count or none do. Without one, what came before a client went away counts.
        """
        async with self.sending(upload_id), self._writing(await self.find(upload_id)) as writer:
            # Only now is it ours: another may have moved it since.
            found = await self.find(upload_id)
            if offset != found.offset_bytes:
                raise offset_wrong(found)
            if found.video_id is not None:
                return found
            if found.is_whole:
                return await self._become_video(found, writer)
            piece = _Piece(self._parts, found, writer, self._keep_s)
            try:
                await writer.go_on(offset)
            except ObjectMissing as error:
                raise await self._lost(found) from error
            if checksum is None:
                try:
                    async for chunk in body:
                        await piece.write(chunk)
                        await piece.keep_now_and_then(counts=True)
                finally:
                    await piece.count()
            else:
                try:
                    async for chunk in body:
                        await piece.write(chunk)
                        await asyncio.to_thread(checksum.update, chunk)
                        await piece.keep_now_and_then(counts=False)
                finally:
                    await piece.leave()
                if not checksum.fits():
                    raise ApiError(460, "CHECKSUM_MISMATCH", "The bytes do not fit their checksum; send them again.")
                await piece.count()
            found = await self.find(upload_id)
            return await self._become_video(found, writer) if found.is_whole else found

    async def drop(self, upload_id: str) -> None:
        """Forget an upload and its bytes; a video that it became stays."""
        found = await self.find(upload_id)
        try:
            if found.video_id is None:
                await self._store.forget(found.key)
        except ObjectBusy as error:
            raise _busy() from error
        async with self._parts.database.write() as session:
            await uploads.drop_upload(session, upload_id)

    async def _counted(self, upload_id: str) -> None:
        """Wait a moment for who still sends: one whose line broke looks at once, while what came is being counted."""
        with suppress(TimeoutError):
            async with asyncio.timeout(BUSY_S):
                for counted in tuple(self._parts.sending.get(upload_id, ())):
                    await counted.wait()

    @asynccontextmanager
    async def sending(self, upload_id: str) -> AsyncIterator[None]:
        """Have those who look wait for a moment: what they would find is about to change."""
        counted = asyncio.Event()
        senders = self._parts.sending[upload_id]
        senders.add(counted)
        try:
            yield
        finally:
            counted.set()
            senders.discard(counted)
            if not senders:
                self._parts.sending.pop(upload_id, None)

    @asynccontextmanager
    async def _writing(self, found: UploadView) -> AsyncIterator[ResumableWriter]:
        until = time.monotonic() + BUSY_S
        while True:
            try:
                opened = self._store.resume(found.key)
                writer = await opened.__aenter__()
                break
            except ObjectBusy as error:
                if time.monotonic() > until:
                    raise _busy() from error
                await asyncio.sleep(0.1)
        try:
            yield writer
        finally:
            await opened.__aexit__(None, None, None)

    async def _lost(self, found: UploadView) -> ApiError:
        """Drop an upload whose bytes are gone: the disk was lost, or somebody tidied up, and nobody can go on with it.

        Beside a bucket another API may have gone on with it since we looked: then only what we looked for is gone.
        """
        async with self._parts.database.write() as session:
            dropped = await uploads.drop_lost(session, found.id, at=found.offset_bytes)
        return upload_not_found() if dropped else interrupted()

    async def _is_stored(self, found: UploadView) -> bool:
        stored = await self._parts.store.stat(found.key)
        return stored is not None and stored.size_bytes == found.size_bytes

    async def _become_video(self, found: UploadView, writer: ResumableWriter) -> UploadView:
        if not await self._is_stored(found):  # else it was killed between bytes and rows
            try:
                await writer.go_on(found.offset_bytes)
                await writer.commit()
            except ObjectMissing as error:
                # In a bucket nobody is locked out: the parts are gone also when another API has just joined them.
                if not await self._is_stored(found):
                    raise await self._lost(found) from error
        number = source_video(found.key)
        assert number is not None
        new = NewVideo(
            video_id=VideoId(number),
            title=found.title or title_from(found.filename),
            source_key=found.key,
            source_filename=found.filename,
            source_size_bytes=found.size_bytes,
            description=found.description,
            owner=found.owner,
            tier=found.tier,
            qualities=found.qualities,
            max_attempts=self._parts.settings.max_retry_attempts,
        )
        try:
            await Intake(self._parts).admit(new, upload_id=found.id)
        except UploadGone as error:
            raise upload_not_found() from error
        except VideoExists:
            # Bytes in place are no longer locked: another request came between them and their rows, and was first.
            found = await self.find(found.id)
            if found.video_id is None:
                raise
            return found
        return await self.find(found.id)


class _Piece:
    """What one request adds. Its bytes go to the disk while more of them arrive: then the end is not long to wait."""

    def __init__(self, parts: Parts, found: UploadView, writer: ResumableWriter, keep_s: float) -> None:
        self._parts, self._upload, self._writer, self._keep_s = parts, found, writer, keep_s
        self._counted, self._counted_at = found.offset_bytes, time.monotonic()
        self._arrived = self._kept = found.offset_bytes
        self._keeping: asyncio.Task[None] | None = None
        self._buffer = bytearray()

    async def write(self, chunk: bytes) -> None:
        if self._arrived + len(chunk) > self._upload.size_bytes:
            raise more_than_announced()
        self._arrived += len(chunk)
        self._buffer += chunk
        if len(self._buffer) >= BUFFER_BYTES:
            await self._flush()

    async def keep_now_and_then(self, *, counts: bool) -> None:
        """Send what came on its way to the disk, and count it every second; what went wrong there is raised here."""
        if self._keeping is not None:
            if not self._keeping.done():
                return
            await self._settle()
        due = counts and time.monotonic() - self._counted_at >= COUNT_EVERY_S
        if due or self._arrived - self._kept >= KEEP_BYTES:
            await self._flush()
            self._kept = self._arrived
            self._keeping = asyncio.create_task(self._keep(counts=due))

    async def count(self) -> None:
        """Make all that came durable, then say so: never the other way round."""
        await self._settle()
        await self._flush()
        await self._keep(counts=True)

    async def leave(self) -> None:
        """Wait for what is on its way, whatever becomes of it: the file is closed after this."""
        if self._keeping is not None:
            await asyncio.wait([self._keeping])

    async def _settle(self) -> None:
        keeping, self._keeping = self._keeping, None
        if keeping is not None:
            await asyncio.wait([keeping])
            keeping.result()

    async def _keep(self, *, counts: bool) -> None:
        durable = await self._writer.keep(self._counted if counts else None)
        if not counts:
            return
        if durable > self._counted:
            try:
                async with self._parts.database.write() as session:
                    await uploads.move_offset(
                        session, self._upload.id, before=self._counted, now=durable, keep_s=self._keep_s
                    )
            except UploadGone as error:
                async with self._parts.database.read() as session:
                    if await uploads.upload(session, self._upload.id) is None:
                        raise upload_not_found() from error
                # It was counted, and Postgres went away before it could say so: who looks sees how far it is.
                raise interrupted() from error
        self._counted, self._counted_at = durable, time.monotonic()

    async def _flush(self) -> None:
        if self._buffer:
            # Taken out first: bytes of which half were written before the disk was full are not written twice.
            data = bytes(self._buffer)
            self._buffer.clear()
            await self._writer.write(data)


def more_than_announced() -> ApiError:
    return ApiError(413, "UPLOAD_TOO_LARGE", "This is more than Upload-Length said.")


def _busy() -> ApiError:
    return ApiError(423, "UPLOAD_LOCKED", "Another request is sending to this upload.", headers={"Retry-After": "1"})
