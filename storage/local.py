"""Objects as files below one root. Publishing is a link or a rename: an object is whole or not there.

Nothing here copies what it was given from its own scratch, and nothing leaves the root.
"""

import asyncio
import contextlib
import os
import shutil
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from contracts.errors import ObjectMissing, StorageUnavailable
from storage.keys import checked
from storage.local_writing import LocalPartial, LocalWriter, in_thread
from storage.partial import PartialFile, begun, forget
from storage.scratch import HERE, Scratch, is_abandoned, lock, remove_abandoned
from storage.store import ObjectFacts

SCRATCH = "scratch"
PARTIAL = "partial"
KEPT = ("uploads", "videos")  # what nobody can make again
READ_BYTES = 1 << 20


class LocalStore:
    def __init__(self, root: Path, *, mounted: bool = True, is_new: Callable[[], bool] = lambda: True) -> None:
        """Open a folder. Not `mounted`: it lies on this machine's own disk, and is made again whenever it is gone.

        Another one is made as long as it `is_new`, which is asked in a thread and only while nothing is in it.
        """
        self.root, self._mounted, self._is_new = root.resolve(), mounted, is_new
        self._scratch = Scratch(self.root / SCRATCH)

    def path(self, key: str) -> Path:
        return self.root.joinpath(*checked(key).split("/"))

    def _insist(self) -> None:
        """Tell a storage that is away from one that lacks something: of a disk that is not mounted nothing is there.

        One that has sources or streams is there; its scratch, which no backup keeps, is made again. Any other is new,
        or its disk is not mounted, and whatever else lies there was left by who started before it was.
        """
        has_videos = any((self.root / name).is_dir() for name in KEPT)
        if self._mounted and not has_videos and not self._is_new():
            raise StorageUnavailable("The storage has neither uploads/ nor videos/: is its disk mounted?")
        (self.root / SCRATCH).mkdir(parents=True, exist_ok=True)

    def _make(self, folder: Path) -> None:
        """Make a folder; never where the disk ought to be mounted, for what lies there is gone when it is."""
        if not folder.is_dir():
            self._insist()
            folder.mkdir(parents=True, exist_ok=True)

    async def put_file(self, key: str, path: Path, *, create_only: bool = False) -> bool:
        target = self.path(key)

        def place() -> bool:
            self._make(target.parent)
            # Bytes first, name second: after a power cut a name must not point at an empty file.
            with path.open("rb") as file:
                os.fsync(file.fileno())
            beside = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
            try:
                os.link(path, beside)
            except OSError:  # another filesystem, or one without links
                shutil.copyfile(path, beside)
            return _name(beside, target, create_only)

        return await in_thread(place)

    async def put_bytes(self, key: str, data: bytes, *, create_only: bool = False) -> bool:
        target = self.path(key)

        def place() -> bool:
            self._make(target.parent)
            beside = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
            with beside.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            return _name(beside, target, create_only)

        return await in_thread(place)

    async def read_bytes(self, key: str) -> bytes:
        return await in_thread(self.path(key).read_bytes)

    async def stat(self, key: str) -> ObjectFacts | None:
        path = self.path(key)

        def look() -> ObjectFacts | None:
            if path.is_file():
                return _facts(key, path)
            self._insist()
            return None

        return await in_thread(look)

    async def list(self, prefix: str) -> list[ObjectFacts]:
        base = self.path(prefix.rstrip("/"))

        def walk() -> list[ObjectFacts]:
            found = []
            if not base.is_dir():
                self._insist()
            for folder, _, names in os.walk(base, onerror=_unless_gone):
                for name in names:
                    path = Path(folder, name)
                    if not name.startswith("."):  # a write under way
                        with contextlib.suppress(FileNotFoundError):  # deleted since the walk saw it
                            found.append(_facts(path.relative_to(self.root).as_posix(), path))
            return sorted(found, key=lambda facts: facts.key)

        return await in_thread(walk)

    async def read(self, key: str, *, start: int = 0, length: int | None = None) -> AsyncIterator[bytes]:
        file = await in_thread(self.path(key).open, "rb")
        try:
            await in_thread(file.seek, start)
            while length is None or length > 0:
                chunk: bytes = await in_thread(file.read, READ_BYTES if length is None else min(READ_BYTES, length))
                if not chunk:
                    return
                if length is not None:
                    length -= len(chunk)
                yield chunk
        finally:
            await asyncio.to_thread(file.close)

    @asynccontextmanager
    async def writer(self, key: str) -> AsyncIterator[LocalWriter]:
        target = self.path(key)
        temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}{HERE}")

        def begin() -> IO[bytes]:
            self._make(target.parent)
            file = temporary.open("xb")
            lock(file.fileno())
            return file

        file = await in_thread(begin)
        try:
            yield LocalWriter(file, temporary, target)
        finally:
            # One call: once handed to a thread it runs to its end, even if this task is cancelled again meanwhile.
            await asyncio.to_thread(_discard, file, temporary)

    async def link(self, key: str) -> str | None:
        return None

    @asynccontextmanager
    async def resume(self, key: str) -> AsyncIterator[LocalPartial]:
        target = self.path(key)
        await in_thread(self._insist)
        file = await in_thread(PartialFile, self._partial(key))
        try:
            yield LocalPartial(file, target, self._make)
        finally:
            await asyncio.to_thread(file.close)

    async def forget(self, key: str) -> None:
        await in_thread(forget, self._partial(key))

    async def begun(self, *, older_than_s: float) -> tuple[str, ...]:
        return await in_thread(begun, self.root / PARTIAL, older_than_s)

    def _partial(self, key: str) -> Path:
        return self.root / PARTIAL / self.path(key).relative_to(self.root)

    async def delete(self, key: str) -> None:
        path = self.path(key)

        def remove() -> None:
            try:
                path.unlink()
            except FileNotFoundError:
                self._insist()  # of a disk that is away nothing is gone

        await in_thread(remove)

    async def delete_prefix(self, prefix: str) -> None:
        folder = self.path(prefix.rstrip("/"))

        def remove() -> None:
            if folder.is_dir():
                shutil.rmtree(folder, onerror=lambda call, path, raised: _unless_gone(raised[1]))
            else:
                self._insist()

        await in_thread(remove)

    @asynccontextmanager
    async def local_file(self, key: str) -> AsyncIterator[Path]:
        if await self.stat(key) is None:
            raise ObjectMissing("The uploaded file is no longer in storage.")
        yield self.path(key)

    @asynccontextmanager
    async def scratch(self, name: str) -> AsyncIterator[Path]:
        await in_thread(self._insist)
        here = await in_thread(self._scratch.lend, name)
        try:
            yield here
        finally:
            await asyncio.to_thread(self._scratch.take_back, here)

    async def remove_abandoned(self, *, limit: int) -> int:
        return await in_thread(remove_abandoned, self.root / SCRATCH, limit=limit)

    async def folders(self, prefix: str) -> tuple[str, ...]:
        base = self.path(prefix.rstrip("/")) if prefix else self.root

        def look() -> tuple[str, ...]:
            if not base.is_dir():
                self._insist()
                return ()
            return tuple(sorted(entry.name for entry in os.scandir(base) if entry.is_dir(follow_symlinks=False)))

        return await in_thread(look)

    async def remove_unfinished(self, prefix: str, *, older_than_s: float) -> int:
        base = self.path(prefix.rstrip("/"))

        def remove() -> int:
            oldest, removed = time.time() - older_than_s, 0
            for folder, _, names in os.walk(base):
                for name in names:
                    if name.startswith("."):  # a write under way, or one whose writer was killed
                        with contextlib.suppress(FileNotFoundError):
                            path = Path(folder, name)
                            if path.stat().st_mtime < oldest or is_abandoned(path):
                                path.unlink()
                                removed += 1
            return removed

        return await in_thread(remove)

    async def free_bytes(self) -> int:
        await in_thread(self._insist)
        return (await in_thread(shutil.disk_usage, self.root / SCRATCH)).free

    async def check(self) -> None:
        async with self.scratch("check") as here:
            await in_thread((here / "probe").write_bytes, b"ok")


def _unless_gone(error: BaseException) -> None:
    """Let a walk go past what was deleted meanwhile; what cannot be read or removed is not nothing."""
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error


def _discard(file: IO[bytes], temporary: Path) -> None:
    file.close()
    temporary.unlink(missing_ok=True)


def _name(beside: Path, target: Path, create_only: bool) -> bool:
    """Give finished bytes their name; with `create_only` the first one keeps it."""
    try:
        if not create_only:
            os.replace(beside, target)
            return True
        os.link(beside, target)  # fails if the name is taken: the one atomic create-only a file system has
    except FileExistsError:
        return False
    finally:
        beside.unlink(missing_ok=True)
    return True


def _facts(key: str, path: Path) -> ObjectFacts:
    stat = path.stat()
    # Objects are replaced whole, never edited: inode, time and size together change whenever the bytes do.
    etag = f"{stat.st_mtime_ns:x}-{stat.st_size:x}-{stat.st_ino:x}"
    return ObjectFacts(key, stat.st_size, datetime.fromtimestamp(stat.st_mtime, UTC), etag)
