"""Objects in an S3 bucket, through obstore. Scratch and copies of sources lie on the worker's own disk.

Every request is bounded: large objects are read in ranges and written in parts, so that a slow reader holds no
connection and a lost one costs no more than a part.
"""

import asyncio
import contextlib
import shutil
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Literal

import obstore
from obstore.exceptions import AlreadyExistsError

from contracts.errors import ObjectMissing, StorageUnavailable
from storage.cache import Cache, Lent
from storage.keys import checked
from storage.local import PARTIAL
from storage.local_writing import in_thread
from storage.partial import PartialFile, forget
from storage.s3_asking import Changed, asked, content_type, facts_of, open_bucket
from storage.s3_multipart import Multipart, Refused
from storage.s3_partial import FOLDER, S3Partial, begun, forget_old, held_keys
from storage.s3_partial import forget as forget_partial
from storage.s3_place import S3Place
from storage.s3_writer import PART_BYTES, S3Writer, refusal, writing
from storage.scratch import Scratch, remove_abandoned
from storage.store import ObjectFacts

if TYPE_CHECKING:
    from obstore import GetOptions

SCRATCH, CACHE = "scratch", "cache"
READ_BYTES = 4 << 20
AT_ONCE = 3  # ranges on their way
DELETE_BATCH = 1000  # S3 takes no more in one call
TIDY_AT_ONCE = 100
CONFLICT_WAITS_S = (0.1, 0.5, 2.0)  # before a put that met another is tried again
CHANGES = 3  # a source that is replaced over and over while we fetch it is given up


class S3Store:
    def __init__(
        self,
        place: S3Place,
        folder: Path,
        *,
        cache_bytes: int | None = None,
        reserve_bytes: int = 0,
        public_endpoint: str | None = None,
        link_s: float = 0.0,
        patience_s: float = 60.0,
    ) -> None:
        self.place = place
        self._folder, self._patience_s = folder, patience_s
        self._bucket = open_bucket(place, place.endpoint, patience_s)
        # A signature holds for one host name: links are signed for the one that viewers use.
        self._public = open_bucket(place, public_endpoint, patience_s) if public_endpoint else self._bucket
        self._link_s = link_s
        self._scratch, self._tidied, self._forgot = Scratch(folder / SCRATCH), False, False
        self._cache = Cache(folder / CACHE, limit_bytes=cache_bytes, reserve_bytes=reserve_bytes)

    # --- writing ------------------------------------------------------------------------------------------------

    async def put_bytes(self, key: str, data: bytes, *, create_only: bool = False) -> bool:
        attributes = {"Content-Type": content_type(checked(key))}
        mode: Literal["create", "overwrite"] = "create" if create_only else "overwrite"
        for wait_s in CONFLICT_WAITS_S:
            try:
                await asked(
                    obstore.put_async(self._bucket, key, data, mode=mode, use_multipart=False, attributes=attributes)
                )
                return True
            except AlreadyExistsError:
                if create_only and await self.stat(key) is not None:
                    return False
            except ObjectMissing as error:  # to a put it can only mean this
                raise StorageUnavailable("The bucket does not exist.") from error
            # Amazon says the same of puts that meet (409), of which none may have been taken.
            await asyncio.sleep(wait_s)
        raise StorageUnavailable("Storage refuses a file as one that is there already, and has none.")

    async def put_file(self, key: str, path: Path, *, create_only: bool = False) -> bool:
        async with writing(self._new_writer(key)) as writer:
            file: IO[bytes] = await asyncio.to_thread(path.open, "rb")
            try:
                while chunk := await asyncio.to_thread(file.read, PART_BYTES):
                    await writer.write(chunk)
            finally:
                await asyncio.to_thread(file.close)
            return await writer.finish(create_only=create_only)

    @asynccontextmanager
    async def writer(self, key: str) -> AsyncIterator[S3Writer]:
        async with writing(self._new_writer(key)) as writer:
            yield writer

    def _new_writer(self, key: str) -> S3Writer:
        full_key = self.place.full(checked(key))
        whole = _Whole(self, key)
        return S3Writer(self.place, full_key, content_type(key), whole, patience_s=self._patience_s)

    @asynccontextmanager
    async def resume(self, key: str) -> AsyncIterator[S3Partial]:
        lock = await in_thread(PartialFile, self._lock_of(key))
        writer = S3Partial(self, self.place, key, content_type(key), self._patience_s)
        try:
            if not self._forgot:
                self._forgot = True
                await forget_old(self, self.place, self._patience_s)
            yield writer
        finally:
            try:
                await asyncio.shield(asyncio.create_task(writer.close()))
            finally:
                await asyncio.to_thread(lock.close)

    async def forget(self, key: str) -> None:
        await in_thread(forget, self._lock_of(key))
        await forget_partial(self, self.place, key, self._patience_s)

    async def begun(self, *, older_than_s: float) -> tuple[str, ...]:
        return await begun(self, older_than_s)

    def _lock_of(self, key: str) -> Path:
        return self._folder / PARTIAL / checked(key)

    async def delete(self, key: str) -> None:
        with contextlib.suppress(ObjectMissing):
            await asked(obstore.delete_async(self._bucket, checked(key)))

    async def delete_prefix(self, prefix: str) -> None:
        keys = [facts.key for facts in await self.list(prefix)]
        for first in range(0, len(keys), DELETE_BATCH):
            await asked(obstore.delete_async(self._bucket, keys[first : first + DELETE_BATCH]))

    async def remove_unfinished(self, prefix: str, *, older_than_s: float) -> int:
        """Abort uploads below a prefix that nobody has written to for so long: S3 does not tell who has died."""
        oldest, removed = datetime.now(UTC) - timedelta(seconds=older_than_s), 0
        below = self.place.full(checked(prefix.rstrip("/"))) + "/"
        try:
            async with Multipart.opened(self.place, self._patience_s) as calls:
                found = [each for each in await calls.unfinished(below) if each.begun_at < oldest]
                # What comes in pieces may rest for longer: who counts the pieces forgets it.
                held = set(map(self.place.full, held_keys(await self.list(FOLDER)))) if found else set()
                for upload in found:
                    if upload.full_key not in held and await calls.last_written_at(upload) < oldest:
                        await calls.abort(upload.full_key, upload.upload_id)
                        removed += 1
        except Refused as error:
            raise refusal(error) from error
        return removed

    # --- reading ------------------------------------------------------------------------------------------------

    async def stat(self, key: str) -> ObjectFacts | None:
        try:
            return facts_of(await asked(obstore.head_async(self._bucket, checked(key))))
        except ObjectMissing:
            return None

    async def list(self, prefix: str) -> "list[ObjectFacts]":
        found = await asked(obstore.list(self._bucket, checked(prefix.rstrip("/"))).collect_async())
        return sorted(map(facts_of, found), key=lambda facts: facts.key)

    async def folders(self, prefix: str) -> tuple[str, ...]:
        below = checked(prefix.rstrip("/")) if prefix else None
        found = await asked(obstore.list_with_delimiter_async(self._bucket, below))
        return tuple(sorted(PurePosixPath(each).name for each in found["common_prefixes"]))

    async def read_bytes(self, key: str) -> bytes:
        answer = await asked(obstore.get_async(self._bucket, checked(key)))
        return bytes(await asked(answer.bytes_async()))

    async def read(self, key: str, *, start: int = 0, length: int | None = None) -> AsyncIterator[bytes]:
        facts = await self.stat(key)
        if facts is None:
            raise ObjectMissing("A stored file is missing.")
        end = facts.size_bytes if length is None else min(facts.size_bytes, start + length)
        try:
            for at in range(start, end, READ_BYTES):
                yield await self._range(key, at, min(end, at + READ_BYTES), facts.etag)
        except Changed as error:
            raise StorageUnavailable("A stored file was replaced while it was read.") from error

    async def _range(self, key: str, start: int, end: int, etag: str) -> bytes:
        options: GetOptions = {"range": (start, end), "if_match": f'"{etag}"'}
        answer = await asked(obstore.get_async(self._bucket, key, options=options))
        return bytes(await asked(answer.bytes_async()))

    async def link(self, key: str) -> str | None:
        if not self._link_s:
            return None
        lasts = timedelta(seconds=self._link_s)
        return await asked(obstore.sign_async(self._public, "GET", checked(key), lasts))

    # --- this machine -------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def local_file(self, key: str) -> AsyncIterator[Path]:
        lent = await self._lent(checked(key))
        try:
            yield lent.path
        finally:
            lent.give_back()

    async def _lent(self, key: str) -> Lent:
        for _ in range(CHANGES):
            facts = await self.stat(key)
            if facts is None:
                raise ObjectMissing("The uploaded file is no longer in storage.")
            etag, size_bytes = facts.etag, facts.size_bytes
            identity = f"{self.place.url(self.place.full(key))} {etag} {size_bytes}"
            with contextlib.suppress(Changed):
                return await self._cache.lend(
                    identity,
                    size_bytes,
                    lambda start: self._ahead(key, start, size_bytes, etag),  # noqa: B023
                )
        raise StorageUnavailable("A stored file was replaced again and again while it was fetched.")

    async def _ahead(self, key: str, start: int, end: int, etag: str) -> AsyncIterator[bytes]:
        """Read a large object in order, some ranges ahead."""
        starts = iter(range(start, end, PART_BYTES))
        coming: deque[asyncio.Task[bytes]] = deque()
        try:
            while True:
                for at in islice(starts, AT_ONCE - len(coming)):
                    one = self._range(key, at, min(end, at + PART_BYTES), etag)
                    coming.append(asyncio.create_task(one))
                if not coming:
                    return
                yield await coming.popleft()
        finally:
            for task in coming:
                task.cancel()
            await asyncio.gather(*coming, return_exceptions=True)

    @asynccontextmanager
    async def scratch(self, name: str) -> AsyncIterator[Path]:
        if not self._tidied:
            # Housekeeping sees the disk of the one machine it runs on; what a killed process left here is ours to find.
            self._tidied = True
            await self.remove_abandoned(limit=TIDY_AT_ONCE)
        await in_thread((self._folder / SCRATCH).mkdir, parents=True, exist_ok=True)
        here = await in_thread(self._scratch.lend, name)
        try:
            yield here
        finally:
            await asyncio.to_thread(self._scratch.take_back, here)

    async def remove_abandoned(self, *, limit: int) -> int:
        return await asyncio.to_thread(remove_abandoned, self._folder / SCRATCH, limit=limit)

    async def free_bytes(self) -> int:
        def look() -> int:
            self._folder.mkdir(parents=True, exist_ok=True)
            return shutil.disk_usage(self._folder).free

        return await asyncio.to_thread(look)

    async def check(self) -> None:
        key = f"{SCRATCH}/check"  # one for all: pods come and go, and nobody would remove theirs
        await self.put_bytes(key, b"ok")
        await self.read_bytes(key)


class _Whole:
    """One object, for its writer."""

    def __init__(self, store: S3Store, key: str) -> None:
        self._store, self._key = store, key

    async def put(self, data: bytes, create_only: bool) -> bool:
        return await self._store.put_bytes(self._key, data, create_only=create_only)

    async def size_bytes(self) -> int | None:
        facts = await self._store.stat(self._key)
        return facts.size_bytes if facts else None
