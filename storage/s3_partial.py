"""An upload that comes in pieces, over many requests and to any API: all of it lies in the bucket from the beginning.

Full parts belong to a multipart upload of the final key. S3 takes no part below 5 MB but the last, so what is left over
is an object of its own, a tail, named for where it begins and how long it is. What a tail holds never changes its
name's meaning: a late writer cannot shorten what another has counted. Which upload the parts belong to stands in a
note beside the tails, that the first one writes.

S3 knows no locks: writers of one machine exclude each other, those of two are told apart by who counts the bytes. Both
send the same file, and a part of one number always holds the same range, so neither spoils the other's. Nor does it
delete a tail that the other may be about to count: only those go that end before what was counted.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Iterable
from contextlib import AsyncExitStack
from typing import Protocol

from contracts.errors import ObjectMissing, VlogError
from storage.s3_multipart import Multipart, Part, Refused
from storage.s3_place import S3Place
from storage.s3_writer import refusal, translated
from storage.store import ObjectFacts

log = logging.getLogger(__name__)

FOLDER = "partial"
NOTE = "upload"
AT_ONCE = 3  # parts on their way
TAIL_S = 30.0  # who has just read an older count still finds its tail
FORGOTTEN_S = 7 * 24 * 3600.0  # nobody goes on with an upload so old
# How many parts of which size: 10,000 are allowed, and three quarters of a terabyte fit.
SIZES = ((2000, 5 << 20), (6000, 32 << 20), (10_000, 128 << 20))


class Objects(Protocol):
    """What of a store is needed here."""

    async def put_bytes(self, key: str, data: bytes, *, create_only: bool = False) -> bool: ...
    async def read_bytes(self, key: str) -> bytes: ...
    async def stat(self, key: str) -> ObjectFacts | None: ...
    async def list(self, prefix: str) -> "list[ObjectFacts]": ...
    async def delete(self, key: str) -> None: ...
    async def delete_prefix(self, prefix: str) -> None: ...


def part_bytes(number: int) -> int:
    """Say how large a part is, from 1 on: always the same, so that whoever goes on cuts where others did."""
    return next(size for last, size in SIZES if number <= last)


def folder_of(key: str) -> str:
    return f"{FOLDER}/{key}"


def tail_key(key: str, start: int, length: int) -> str:
    return f"{folder_of(key)}/{start}-{length}"


def end_of(tail: str) -> int:
    """Say where a tail ends, from its name."""
    return sum(map(int, tail.rpartition("/")[2].split("-")))


def held_keys(found: Iterable[ObjectFacts]) -> set[str]:
    """Name the objects of which parts lie in the bucket for somebody who will go on."""
    return {
        facts.key.removeprefix(f"{FOLDER}/").removesuffix(f"/{NOTE}")
        for facts in found
        if facts.key.endswith(f"/{NOTE}")
    }


class S3Partial:
    def __init__(self, objects: Objects, place: S3Place, key: str, content_type: str, patience_s: float) -> None:
        self._objects, self._place, self._key, self._content_type = objects, place, key, content_type
        self._patience_s = patience_s
        self._open = AsyncExitStack()
        self._calls: Multipart | None = None
        self._upload_id: str | None = None
        self._etags: dict[int, str] = {}
        self._number = 0  # of parts that are there or on their way
        self._start = 0  # where the tail begins: behind those
        self._tail = bytearray()
        self._sending: dict[int, asyncio.Task[None]] = {}
        self._failed: BaseException | None = None  # a part that did not arrive: nothing behind it may count
        self._tails: dict[str, float] = {}  # ours, and since when
        self.size_bytes = 0

    async def go_on(self, at: int) -> None:
        found = {facts.key: facts.size_bytes for facts in await self._objects.list(folder_of(self._key))}
        parts = await self._parts(f"{folder_of(self._key)}/{NOTE}" in found)
        self._number, self._start, self._etags = 0, 0, {}
        for number in range(1, len(parts) + 1):
            part = parts.get(number)
            if part is None or part.size_bytes != part_bytes(number) or self._start + part.size_bytes > at:
                break  # what lies beyond was never counted
            self._number, self._start = number, self._start + part.size_bytes
            self._etags[number] = part.etag
        tail = tail_key(self._key, self._start, at - self._start)
        if at > self._start and tail not in found:
            raise ObjectMissing("A stored file is missing.")
        self._tail = bytearray(await self._objects.read_bytes(tail) if at > self._start else b"")
        self.size_bytes = at
        for key in found:
            # What lies beyond stays until it is passed, or all is joined: another may count it at this moment.
            if not key.endswith(f"/{NOTE}") and end_of(key) < at:
                await self._objects.delete(key)

    async def _parts(self, noted: bool) -> dict[int, Part]:
        if not noted:
            return {}
        self._upload_id = (await self._objects.read_bytes(f"{folder_of(self._key)}/{NOTE}")).decode()
        with translated():
            try:
                return await (await self._asking()).parts(self._place.full(self._key), self._upload_id)
            except Refused as error:
                if error.status != 404:
                    raise
                # A rule of the bucket's has aborted it: whoever has sent parts has lost them.
                await self._objects.delete(f"{folder_of(self._key)}/{NOTE}")
                self._upload_id = None
                return {}

    async def write(self, chunk: bytes) -> None:
        self._tail += chunk
        self.size_bytes += len(chunk)
        while len(self._tail) >= (wanted := part_bytes(self._number + 1)):
            data = bytes(memoryview(self._tail)[:wanted])
            del self._tail[:wanted]
            self._number, self._start = self._number + 1, self._start + wanted
            await self._send(self._number, data)

    async def keep(self, counted: int | None = 0) -> int:
        self._raise_failure()
        # All of one moment: more may be written meanwhile.
        size_bytes, tail, start, sending = self.size_bytes, bytes(self._tail), self._start, [*self._sending.values()]
        await self._settled(sending)
        if tail and counted is not None:
            key = tail_key(self._key, start, len(tail))
            await self._objects.put_bytes(key, tail)
            self._tails[key] = time.monotonic()
            await self._drop_old_tails(counted)
        return size_bytes

    async def _drop_old_tails(self, counted: int) -> None:
        # However old: until more is counted, one goes on behind the last tail that was.
        old = [key for key, at in self._tails.items() if at < time.monotonic() - TAIL_S and end_of(key) < counted]
        for key in old:
            del self._tails[key]
            await self._objects.delete(key)

    async def commit(self) -> None:
        self._raise_failure()
        if self._number:
            if self._tail:
                await self._send(self._number + 1, bytes(self._tail))
            await self._settled()
            await self._complete()
        else:
            await self._objects.put_bytes(self._key, bytes(self._tail))
        self._upload_id, self._number, self._start, self._tail, self._etags = None, 0, 0, bytearray(), {}
        await self._objects.delete_prefix(folder_of(self._key))

    async def _complete(self) -> None:
        assert self._upload_id is not None
        with translated():
            try:
                await (await self._asking()).complete(
                    self._place.full(self._key), self._upload_id, self._etags, create_only=False
                )
            except Refused as error:
                # An answer that was lost: asked again, the server has nothing left to complete.
                stored = await self._objects.stat(self._key) if error.code == "NoSuchUpload" else None
                if stored is None or stored.size_bytes != self.size_bytes:
                    raise

    async def _send(self, number: int, data: bytes) -> None:
        if self._upload_id is None:
            self._upload_id = await self._begun()
        while len(self._sending) >= AT_ONCE:
            await self._settled([next(iter(self._sending.values()))])
        self._sending[number] = asyncio.create_task(self._put(number, data))

    async def _begun(self) -> str:
        """Begin the upload of this object; of two who begin at once both go on with the first one's."""
        calls, key, note = await self._asking(), self._place.full(self._key), f"{folder_of(self._key)}/{NOTE}"
        with translated():
            upload_id = await calls.begin(key, self._content_type)
            if await self._objects.put_bytes(note, upload_id.encode(), create_only=True):
                return upload_id
            noted = (await self._objects.read_bytes(note)).decode()
            if noted != upload_id:  # else it is our own note, and only the answer was lost
                await calls.abort(key, upload_id)
        return noted

    async def _put(self, number: int, data: bytes) -> None:
        assert self._upload_id is not None
        calls = await self._asking()
        self._etags[number] = await calls.put_part(self._place.full(self._key), self._upload_id, number, data)

    async def _settled(self, some: "list[asyncio.Task[None]] | None" = None) -> None:
        """Wait for parts on their way, all unless some are named; what went wrong with one is raised."""
        wanted = [*self._sending.values()] if some is None else some
        if wanted:
            await asyncio.wait(wanted)
        self._sending = {number: task for number, task in self._sending.items() if task not in wanted}
        for task in wanted:
            self._failed = self._failed or task.exception()
        self._raise_failure()

    def _raise_failure(self) -> None:
        if self._failed is not None:
            with translated():
                raise self._failed

    async def _asking(self) -> Multipart:
        if self._calls is None:
            self._calls = await self._open.enter_async_context(Multipart.opened(self._place, self._patience_s))
        return self._calls

    async def close(self) -> None:
        for task in self._sending.values():
            task.cancel()
        await asyncio.gather(*self._sending.values(), return_exceptions=True)
        await self._open.aclose()


async def forget(objects: Objects, place: S3Place, key: str, patience_s: float) -> None:
    """Drop the parts, then tails and the note that says where the parts are."""
    with contextlib.suppress(ObjectMissing):
        upload_id = (await objects.read_bytes(f"{folder_of(key)}/{NOTE}")).decode()
        try:
            async with Multipart.opened(place, patience_s) as calls:
                await calls.abort(place.full(key), upload_id)
        except Refused as error:
            raise refusal(error) from error
    await objects.delete_prefix(folder_of(key))


async def begun(objects: Objects, older_than_s: float) -> tuple[str, ...]:
    """Name what was begun and left alone for so long, by whichever machine."""
    newest: dict[str, float] = {}
    for facts in await objects.list(FOLDER):
        key = facts.key.removeprefix(f"{FOLDER}/").rpartition("/")[0]
        newest[key] = max(newest.get(key, 0.0), facts.modified_at.timestamp())
    return tuple(sorted(key for key, at in newest.items() if at < time.time() - older_than_s))


async def forget_old(objects: Objects, place: S3Place, patience_s: float) -> None:
    """Forget what was begun and left alone for a week. Never raises: whoever sends now is not to suffer from it."""
    try:
        for key in await begun(objects, FORGOTTEN_S):
            await forget(objects, place, key, patience_s)
    except VlogError as error:
        log.warning("uploads that nobody goes on with stay for now: %s", error)
