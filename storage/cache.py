"""Copies of remote objects on this machine's disk, for ffmpeg to open: each is fetched once, whoever asks.

No table: a file's lock says what becomes of it, and the kernel drops the lock when its holder dies. Who lends a copy
holds it shared, who fetches or removes it holds it alone. A copy is named for the very bytes it holds, and gets that
name when it is whole.
"""

import asyncio
import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec, TypeVar

from contracts.errors import ScratchFull, StorageUnavailable

LOOK_AGAIN_S = 0.2
PART = ".part"

P = ParamSpec("P")
R = TypeVar("R")
Fetch = Callable[[int], AsyncIterator[bytes]]  # gives the bytes from an offset on, in order


@dataclass(frozen=True)
class Lent:
    """A copy that stays for as long as it is not given back."""

    path: Path
    _handle: int

    def give_back(self) -> None:
        os.close(self._handle)


class Cache:
    def __init__(self, folder: Path, *, limit_bytes: int | None, reserve_bytes: int) -> None:
        self._folder = folder
        self._limit_bytes = limit_bytes  # none: half of what would be free without the cache
        self._reserve_bytes = reserve_bytes  # of the disk, for others

    async def lend(self, identity: str, size_bytes: int, fetch: Fetch) -> Lent:
        """Lend the copy of these bytes; who comes while another fetches it waits for that one."""
        path = self._folder / hashlib.sha256(identity.encode()).hexdigest()[:40]
        # The size that it will have is in its name: whoever looks for room knows what is still to come.
        part = path.with_name(f"{path.name}.{size_bytes}{PART}")
        while True:
            handle = await _opened(_borrowed, path, size_bytes)
            if handle is None:
                handle = await self._fetched(path, part, size_bytes, fetch)
            if handle is not None:
                return Lent(path, handle)
            await asyncio.sleep(LOOK_AGAIN_S)

    async def _fetched(self, path: Path, part: Path, size_bytes: int, fetch: Fetch) -> int | None:
        """Fetch what is missing; None when somebody else is at it, or was done a moment ago."""
        handle = await _opened(_claimed, part)
        if handle is None:
            return None
        lent = False
        try:
            if not await asyncio.to_thread(path.exists):
                await self._fill(handle, part, size_bytes, fetch)
                lent = await _ended(_named, handle, part, path)
            else:
                await asyncio.to_thread(part.unlink)
            return handle if lent else None
        finally:
            if not lent:
                os.close(handle)

    async def _fill(self, handle: int, part: Path, size_bytes: int, fetch: Fetch) -> None:
        if os.fstat(handle).st_mtime < _booted_at():
            os.ftruncate(handle, 0)  # a machine that lost its power may have lost bytes in the middle, too
        have = os.fstat(handle).st_size  # what an earlier try has fetched of the same bytes
        try:
            await asyncio.to_thread(self._make_room, part)
            async for chunk in fetch(have):
                await _ended(_append, handle, have, chunk)
                have += len(chunk)
            if have != size_bytes:
                if have > size_bytes:  # more would not make it right
                    os.ftruncate(handle, 0)
                raise StorageUnavailable("A stored file could not be read whole.")
            await asyncio.to_thread(os.fsync, handle)
        except OSError as error:
            os.ftruncate(handle, 0)
            if error.errno in (28, 122):  # ENOSPC, EDQUOT
                raise ScratchFull("The disk for work in progress is full.") from error
            raise StorageUnavailable(f"The disk for work in progress failed: {error.strerror}.") from error

    def _make_room(self, part: Path) -> None:
        """Remove what was not used for longest and nobody holds, until this one fits, within our limit and on the disk.

        What is larger than the limit is let in when it is alone, rather than never.
        """
        with _alone_in(self._folder):
            copies = [copy for copy in map(_Copy.of, self._folder.iterdir()) if copy is not None]
            used = sum(copy.will_be_bytes for copy in copies)  # this one's among them
            coming = sum(copy.will_be_bytes - copy.size_bytes for copy in copies)
            free = shutil.disk_usage(self._folder).free
            on_disk = sum(copy.size_bytes for copy in copies)
            over = used - (self._limit_bytes if self._limit_bytes is not None else (free + on_disk) // 2)
            short = coming + self._reserve_bytes - free
            others = len(copies) - 1
            for copy in sorted(copies, key=lambda copy: copy.used_at):
                if over <= 0 and short <= 0:
                    return
                if copy.path != part and _removed(copy.path):
                    over -= copy.will_be_bytes
                    short -= copy.will_be_bytes
                    others -= 1
            if short > 0 or (over > 0 and others > 0):
                raise ScratchFull("There is no room on this machine for a copy of the source.")


@dataclass(frozen=True)
class _Copy:
    path: Path
    size_bytes: int
    will_be_bytes: int
    used_at: float

    @classmethod
    def of(cls, path: Path) -> "_Copy | None":
        try:
            stat = path.stat()
            size = int(path.name.split(".")[1]) if path.name.endswith(PART) else stat.st_size
        except (FileNotFoundError, ValueError, IndexError):
            return None
        if path.name.startswith("."):
            return None
        return cls(path, stat.st_size, max(size, stat.st_size), stat.st_mtime)


async def _opened(call: Callable[P, int | None], *args: P.args, **kwargs: P.kwargs) -> int | None:
    """Open and lock a file in a thread. Who is cancelled meanwhile gets no handle: its lock must not stay for ever."""
    opening = asyncio.ensure_future(asyncio.to_thread(call, *args, **kwargs))
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        opening.add_done_callback(_close)
        raise


def _close(opening: "asyncio.Future[int | None]") -> None:
    if not opening.cancelled() and opening.exception() is None and (handle := opening.result()) is not None:
        os.close(handle)


async def _ended(call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Work on an open file in a thread. Who is cancelled waits: a handle that is closed may be another file's next."""
    working = asyncio.ensure_future(asyncio.to_thread(call, *args, **kwargs))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        while not working.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([working])
        raise


def _booted_at() -> float:
    """Say when this machine was started, by the clock of files; where that is not told, before all files."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.time() - time.clock_gettime(clock) if clock is not None else 0.0


def _borrowed(path: Path, size_bytes: int) -> int | None:
    """Hold a whole copy; None when there is none."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    if _lock(handle, fcntl.LOCK_SH):
        if os.fstat(handle).st_size != size_bytes:  # somebody had his hands in here
            path.unlink(missing_ok=True)
        elif os.fstat(handle).st_nlink:
            os.utime(handle)
            return handle
    os.close(handle)
    return None


def _claimed(part: Path) -> int | None:
    """Be the one who fetches; None when somebody else is."""
    part.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(part, os.O_RDWR | os.O_CREAT, 0o600)
    if _lock(handle, fcntl.LOCK_EX) and os.fstat(handle).st_nlink:
        return handle
    os.close(handle)
    return None


def _named(handle: int, part: Path, path: Path) -> bool:
    """Give a whole copy its name, and hold it as one who borrows; False when it was removed in between."""
    os.replace(part, path)
    return _lock(handle, fcntl.LOCK_SH) and os.fstat(handle).st_nlink > 0


def _removed(path: Path) -> bool:
    """Remove a copy that nobody holds."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return True
    try:
        if not _lock(handle, fcntl.LOCK_EX):
            return False
        path.unlink(missing_ok=True)
        return True
    finally:
        os.close(handle)


def _lock(handle: int, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Let one process at a time look for room: two would give the same bytes away."""
    handle = os.open(folder / ".room", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _append(handle: int, at: int, chunk: bytes) -> None:
    rest = memoryview(chunk)
    while rest:
        written = os.pwrite(handle, rest, at)
        at, rest = at + written, rest[written:]
