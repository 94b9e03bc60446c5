"""Storage as a remote worker has it: the source and the outputs of one claimed step, through the worker API.

Whatever the network does, a call is tried again for as long as the step runs. What a step has no business with, the
API refuses; what no claimed step does, is not here.
"""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote

import httpx

from contracts.errors import ObjectMissing, StorageUploadFailed
from contracts.gateway import CHECKSUM_HEADER
from storage.cache import Cache
from storage.http_calls import Away, Refused, Waits, WorkerCalls
from storage.local import LocalStore
from storage.store import ObjectFacts, ObjectWriter

SOURCE, OUTPUT = "/api/worker/source/", "/api/worker/output/"
READ_BYTES = 1 << 20
Body = bytes | AsyncIterator[bytes]
_TOTAL = re.compile(r"bytes [\d*-]+/(\d+)")


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
            answer = await self._calls.insist("PUT", _path(OUTPUT, key), claim=self._claim, body=body, headers=headers)
        except Refused as error:
            raise StorageUploadFailed(error.sentence) from error
        return bool(answer.json()["created"])

    async def read_bytes(self, key: str) -> bytes:
        answer = await self._calls.insist("GET", _path(OUTPUT, key), claim=self._claim)
        return answer.content

    async def stat(self, key: str) -> ObjectFacts | None:
        return await self._facts(_path(OUTPUT, key), key)

    async def list(self, prefix: str) -> list[ObjectFacts]:
        answer = await self._calls.insist("GET", _path(OUTPUT, prefix), claim=self._claim)
        return [
            ObjectFacts(item["key"], item["size_bytes"], datetime.fromisoformat(item["modified_at"]), item["etag"])
            for item in answer.json()["items"]
        ]

    async def delete(self, key: str) -> None:
        await self._calls.insist("DELETE", _path(OUTPUT, key), claim=self._claim)

    # --- the source ---------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def local_file(self, key: str) -> AsyncIterator[Path]:
        path = _path(SOURCE, key)
        facts = await self._facts(path, key)
        if facts is None:
            raise ObjectMissing("The uploaded file is no longer in storage.")
        identity = f"{self._calls.url} {key} {facts.etag}"
        lent = await self._cache.lend(identity, facts.size_bytes, lambda have: self._bytes(path, facts.etag, have))
        try:
            yield lent.path
        finally:
            lent.give_back()

    async def _bytes(self, path: str, etag: str, have: int) -> AsyncIterator[bytes]:
        """Give an object from an offset on; a connection that breaks is made anew, from where it broke."""
        waits = Waits()
        while True:
            headers = {"Range": f"bytes={have}-", "If-Range": f'"{etag}"'}
            try:
                async with self._calls.stream(path, claim=self._claim, headers=headers) as answer:
                    if answer.status_code != httpx.codes.PARTIAL_CONTENT:
                        raise ObjectMissing("The uploaded file is not the one that the step began with.")
                    async for chunk in answer.aiter_bytes(READ_BYTES):
                        have, waits = have + len(chunk), Waits()
                        yield chunk
                return
            except Away as error:
                await self._calls.bear(error, waits)
            except Refused as error:
                if error.status == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:  # all of it was there
                    return
                raise

    async def _facts(self, path: str, key: str) -> ObjectFacts | None:
        """Ask for one byte, which tells of them all."""
        try:
            answer = await self._calls.insist("GET", path, claim=self._claim, headers={"Range": "bytes=0-0"})
        except ObjectMissing:
            return None
        total = _TOTAL.fullmatch(answer.headers.get("Content-Range", ""))
        size = int(total[1]) if total else len(answer.content)
        return ObjectFacts(key, size, datetime.now(UTC), answer.headers.get("ETag", "").strip('"'))

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
