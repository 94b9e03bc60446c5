"""Storage as a remote worker has it: the source and the outputs of one claimed step, through the worker API.

Whatever the network does, a call is tried again for as long as the step runs. What a step has no business with, the
API refuses; what no claimed step does, is not here. What something on the way says in the API's place is not believed.
"""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TypeVar
from urllib.parse import quote

import httpx

from contracts.errors import ObjectMissing, StorageUnavailable, StorageUploadFailed
from contracts.gateway import CHECKSUM_HEADER
from storage.cache import Cache, Lent
from storage.http_calls import Away, NotOurs, Refused, Waits, WorkerCalls
from storage.local import LocalStore
from storage.store import ObjectFacts, ObjectWriter

T = TypeVar("T")

SOURCE, OUTPUT = "/api/worker/source/", "/api/worker/output/"
READ_BYTES = 1 << 20
# The same file may have two tags: of several APIs each sees the disk by its own mount. So many others in a row, and it
# is another file; so many files, and it is given up for now.
MOST_OTHERS, MOST_FILES = 3, 3
Body = bytes | AsyncIterator[bytes]
_BYTES = "application/octet-stream"  # as the API sends every object; no page says that of itself
_AS_IS = {"Accept-Encoding": "identity"}  # a proxy that packs them gives them another tag, and no length
_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+)")


@dataclass(frozen=True)
class _Sent:
    begins: int  # at this byte of the object
    size_bytes: int  # of all of it
    etag: str


class _Another(Exception):
    """There are other bytes under this name than those that were asked for."""


class HttpStore:
    """A `Store` for one claim; cache and scratch are the whole worker's."""

    def __init__(self, calls: WorkerCalls, claim: str, work: LocalStore, cache: Cache) -> None:
        self._calls, self._claim, self._work, self._cache = calls, claim, work, cache

    # --- outputs ------------------------------------------------------------------------------------------------

    async def put_file(self, key: str, path: Path, *, create_only: bool = False) -> bool:
        checksum, size = await asyncio.to_thread(_measured, path)
        return await self._put(key, checksum, size, lambda: _chunks(path))

    async def put_bytes(self, key: str, data: bytes, *, create_only: bool = False) -> bool:
        return await self._put(key, hashlib.sha256(data).hexdigest(), len(data), lambda: data)

    async def _put(self, key: str, checksum: str, size: int, body: Callable[[], Body]) -> bool:
        # Which keys are created once is the API's to say: it knows the step.
        headers = {CHECKSUM_HEADER: checksum, "Content-Length": str(size)}
        try:
            return await self._insist("PUT", _path(OUTPUT, key), _is_created, body=body, headers=headers)
        except Refused as error:
            raise StorageUploadFailed(error.sentence) from error

    async def read_bytes(self, key: str) -> bytes:
        return await self._insist("GET", _path(OUTPUT, key), _content, headers=_AS_IS)

    async def stat(self, key: str) -> ObjectFacts | None:
        return await self._facts(_path(OUTPUT, key), key)

    async def list(self, prefix: str) -> list[ObjectFacts]:
        return await self._insist("GET", _path(OUTPUT, prefix), _listed)

    async def delete(self, key: str) -> None:
        await self._insist("DELETE", _path(OUTPUT, key), _is_deleted)

    async def _insist(self, method: str, path: str, read: Callable[[httpx.Response], T], **how: Any) -> T:
        return await self._calls.insist(method, path, read, claim=self._claim, **how)

    # --- the source ---------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def local_file(self, key: str) -> AsyncIterator[Path]:
        lent = await self._lent(_path(SOURCE, key), key)
        try:
            yield lent.path
        finally:
            lent.give_back()

    async def _lent(self, path: str, key: str) -> Lent:
        """Fetch the source. Found to be another one meanwhile it is begun anew: no two are ever joined."""
        waits = Waits()
        for _ in range(MOST_FILES):
            facts = await self._facts(path, key)
            if facts is None:
                raise ObjectMissing("The uploaded file is no longer in storage.")
            identity = f"{self._calls.url} {key} {facts.etag}"
            try:
                return await self._cache.lend(identity, facts.size_bytes, partial(self._bytes, path, facts))
            except _Another:
                await waits.once()
        raise StorageUnavailable("The uploaded file is another one each time it is looked at.")

    async def _bytes(self, path: str, facts: ObjectFacts, have: int) -> AsyncIterator[bytes]:
        """Give an object from an offset on; a connection that breaks is made anew, from where it broke."""
        waits, others = Waits(), 0
        while have < facts.size_bytes:  # a proxy may end an answer as if it were whole
            headers = {"Range": f"bytes={have}-", "If-Range": f'"{facts.etag}"', **_AS_IS}
            why = Away("The API's answer broke off.")
            try:
                async with self._calls.stream(path, _sent, claim=self._claim, headers=headers) as (answer, sent):
                    if (sent.etag, sent.size_bytes) != (facts.etag, facts.size_bytes):
                        others += 1
                        raise _Another if others > MOST_OTHERS else Away("Another file answers by this name.")
                    if (begins := sent.begins) > have:
                        raise NotOurs("A part of the file was left out on its way here.")
                    async for chunk in answer.aiter_bytes(READ_BYTES):
                        new = chunk[max(0, have - begins) :]  # all of it is sent where a proxy forgets the range
                        begins += len(chunk)
                        if new:
                            have += len(new)
                            waits, others = Waits(), 0
                            yield new
            except Away as error:
                why = error
            if have < facts.size_bytes:
                await self._calls.bear(why, waits)

    async def _facts(self, path: str, key: str) -> ObjectFacts | None:
        """Ask for one byte, which tells of them all; what else may come is not read."""
        waits, headers = Waits(), {"Range": "bytes=0-0", **_AS_IS}
        while True:
            try:
                async with self._calls.stream(path, _sent, claim=self._claim, headers=headers) as (answer, sent):
                    if answer.status_code == httpx.codes.PARTIAL_CONTENT:
                        await answer.aread()  # then the connection is good for the next call
                    return ObjectFacts(key, sent.size_bytes, datetime.now(UTC), sent.etag)
            except ObjectMissing:
                return None
            except Away as error:
                await self._calls.bear(error, waits)

    # --- this machine's disk ------------------------------------------------------------------------------------

    def scratch(self, name: str) -> AbstractAsyncContextManager[Path]:
        return self._work.scratch(name)

    async def free_bytes(self) -> int:
        return await self._work.free_bytes()

    # --- what no remote step does -------------------------------------------------------------------------------

    def read(self, key: str, *, start: int = 0, length: int | None = None) -> AsyncIterator[bytes]:
        _not_here()

    def writer(self, key: str) -> AbstractAsyncContextManager[ObjectWriter]:
        _not_here()

    async def link(self, key: str) -> str | None:
        _not_here()

    async def delete_prefix(self, prefix: str) -> None:
        _not_here()

    async def folders(self, prefix: str) -> tuple[str, ...]:
        _not_here()

    async def remove_unfinished(self, prefix: str, *, older_than_s: float) -> int:
        _not_here()

    async def remove_abandoned(self, *, limit: int) -> int:
        _not_here()

    async def check(self) -> None:
        _not_here()


def _not_here() -> NoReturn:
    raise NotImplementedError("a remote worker has its step's source and outputs, and nothing else")


# --- what the API answers: whoever says something else is not the API ---------------------------------------------


def _is_created(answer: httpx.Response) -> bool:
    return bool(answer.json()["created"])


def _is_deleted(answer: httpx.Response) -> None:
    if answer.status_code != httpx.codes.NO_CONTENT:
        raise ValueError("somebody else's word")


def _content(answer: httpx.Response) -> bytes:
    _tag(answer)
    return answer.content


def _listed(answer: httpx.Response) -> list[ObjectFacts]:
    return [
        ObjectFacts(item["key"], item["size_bytes"], datetime.fromisoformat(item["modified_at"]), item["etag"])
        for item in answer.json()["items"]
    ]


def _sent(answer: httpx.Response) -> _Sent:
    """Read the head of an object, or of a range of it."""
    etag = _tag(answer)
    if answer.status_code == httpx.codes.OK:
        return _Sent(0, int(answer.headers["Content-Length"]), etag)
    if (part := _RANGE.fullmatch(answer.headers["Content-Range"])) is None:
        raise ValueError("somebody else's range")
    return _Sent(int(part[1]), int(part[2]), etag)


def _tag(answer: httpx.Response) -> str:
    if answer.headers["Content-Type"] != _BYTES:
        raise ValueError("somebody else's page")
    return str(answer.headers["ETag"]).removeprefix("W/").strip('"')  # a proxy may have made it a weak one


def _path(below: str, key: str) -> str:
    return below + quote(key)


def _measured(path: Path) -> tuple[str, int]:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest(), file.tell()


async def _chunks(path: Path) -> AsyncIterator[bytes]:
    file = await asyncio.to_thread(path.open, "rb")
    try:
        while chunk := await asyncio.to_thread(file.read, READ_BYTES):
            yield chunk
    finally:
        file.close()
