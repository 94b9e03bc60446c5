"""One growing object in S3: parts go out while more bytes come in, and nothing is there until all is."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Protocol

from contracts.errors import ObjectMissing, StorageUnavailable, VlogError
from storage.s3_multipart import Multipart, Refused
from storage.s3_place import S3Place

log = logging.getLogger(__name__)

PART_BYTES = 16 << 20
AT_ONCE = 3  # parts on their way: enough to keep the line busy, and 64 MB at most in memory
# S3 takes 10,000 parts. From here on they are larger, so that a terabyte still fits.
SMALL_PARTS = 5000
LARGER = 16


class Whole(Protocol):
    """What can be done with the object in one call."""

    async def put(self, data: bytes, create_only: bool) -> bool: ...

    async def size_bytes(self) -> int | None: ...


class S3Writer:
    """Small objects go out whole at the end; of larger ones each part as soon as it is full."""

    def __init__(self, place: S3Place, full_key: str, content_type: str, whole: Whole, *, patience_s: float) -> None:
        self._place, self._key, self._content_type = place, full_key, content_type
        self._whole, self._patience_s = whole, patience_s
        self._open = AsyncExitStack()
        self._calls: Multipart | None = None
        self._begun: asyncio.Task[str] | None = None  # gives the upload's id
        self._sending: set[asyncio.Task[None]] = set()
        self._etags: dict[int, str] = {}
        self._parts = 0
        self._buffer = bytearray()
        self._done = False
        self.size_bytes = 0

    async def write(self, chunk: bytes) -> None:
        self._buffer += chunk
        self.size_bytes += len(chunk)
        while len(self._buffer) >= (wanted := PART_BYTES * (1 if self._parts < SMALL_PARTS else LARGER)):
            part = bytes(memoryview(self._buffer)[:wanted])
            del self._buffer[:wanted]
            await self._send(part)

    async def commit(self) -> None:
        await self.finish(create_only=False)

    async def finish(self, *, create_only: bool) -> bool:
        """Give the bytes their name; False when `create_only` and somebody was first."""
        if self._begun is None:
            first = await self._whole.put(bytes(self._buffer), create_only)
            self._done = True
            return first
        if self._buffer:
            await self._send(bytes(self._buffer))
            self._buffer.clear()
        await self._sent(at_most=0)
        self._done = await self._complete(await self._begun, create_only=create_only)
        return self._done  # one that came second still has its parts to take back

    async def _complete(self, upload_id: str, *, create_only: bool) -> bool:
        assert self._calls is not None
        try:
            return await self._calls.complete(self._key, upload_id, self._etags, create_only=create_only)
        except Refused as error:
            # An answer that was lost: asked again, the server has nothing left to complete.
            if error.code == "NoSuchUpload" and await self._whole.size_bytes() == self.size_bytes:
                return True
            if create_only and error.status == 409 and await self._whole.size_bytes() is not None:
                return False
            raise refusal(error) from error

    async def _send(self, data: bytes) -> None:
        if self._begun is None:
            self._calls = await self._open.enter_async_context(Multipart.opened(self._place, self._patience_s))
            self._begun = asyncio.create_task(self._calls.begin(self._key, self._content_type))
        with translated():
            upload_id = await asyncio.shield(self._begun)  # whoever gives up now must learn what to abort
        await self._sent(at_most=AT_ONCE - 1)
        self._parts += 1
        self._sending.add(asyncio.create_task(self._put(upload_id, self._parts, data)))

    async def _put(self, upload_id: str, number: int, data: bytes) -> None:
        assert self._calls is not None
        self._etags[number] = await self._calls.put_part(self._key, upload_id, number, data)

    async def _sent(self, *, at_most: int) -> None:
        """Wait until no more than so many parts are on their way."""
        while len(self._sending) > at_most:
            done, self._sending = await asyncio.wait(self._sending, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                with translated():
                    task.result()

    async def close(self) -> None:
        """Take back what was not finished. Never raises: what cannot be reached now, housekeeping finds later."""
        try:
            for task in self._sending:
                task.cancel()
            # Before the abort: a part that arrives after it would stay for ever.
            await asyncio.gather(*self._sending, return_exceptions=True)
            if self._begun is not None and not self._done:
                assert self._calls is not None
                await self._calls.abort(self._key, await self._begun)
        except (VlogError, Refused) as error:
            log.warning("an unfinished upload stays until housekeeping finds it: %s", error)
        finally:
            await self._open.aclose()


@asynccontextmanager
async def writing(writer: S3Writer) -> AsyncIterator[S3Writer]:
    try:
        yield writer
    finally:
        # It runs to its end, even if this task is cancelled again meanwhile.
        await asyncio.shield(asyncio.create_task(writer.close()))


@contextmanager
def translated() -> Iterator[None]:
    """Say what a server refused in storage's words."""
    try:
        yield
    except Refused as error:
        raise refusal(error) from error


def refusal(error: Refused) -> VlogError:
    match error.status, error.code:
        case 404, "NoSuchBucket":
            return StorageUnavailable("The bucket does not exist.")
        case 404, _:
            return ObjectMissing("A stored file is missing.")
        case 401 | 403, _:
            return StorageUnavailable("Storage refuses our key.", detail=str(error))
        case _:
            return StorageUnavailable(f"Storage refused a file: {error.code or error.status}.")
