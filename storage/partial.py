"""A file that comes in pieces, over many requests and perhaps many processes: locked while somebody writes to it.

The kernel drops the lock when its holder dies, however it dies, so whoever comes next goes on at once. Where files
cannot be locked nobody is refused; who counts the bytes then has to notice that two of them do.
"""

import errno
import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from contracts.errors import ObjectBusy


class PartialFile:
    """One piece of the writing; blocking, so for threads.

    Whoever waits for a thread may give up and close while it still works: the guards make that wait too. There are
    two, so that bytes are written while others are on their way to the disk.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._handle = _open_locked(path, os.O_CREAT)
        self._writing, self._keeping = threading.Lock(), threading.Lock()
        self._closed = False
        self._is_named = os.fstat(self._handle).st_size > 0  # else its name may not outlive a power cut

    @contextmanager
    def _open(self, *guards: threading.Lock) -> Iterator[int]:
        with ExitStack() as stack:
            for guard in guards:
                stack.enter_context(guard)
            if self._closed:
                raise OSError(errno.EBADF, "closed")
            yield self._handle

    def go_on(self, at: int) -> None:
        with self._open(self._writing) as handle:
            if os.fstat(handle).st_size < at:
                raise FileNotFoundError
            # What a killed process wrote and nobody counted is sent again.
            os.ftruncate(handle, at)
            os.lseek(handle, at, os.SEEK_SET)

    def write(self, chunk: bytes) -> None:
        with self._open(self._writing) as handle:
            rest = memoryview(chunk)
            while rest:
                rest = rest[os.write(handle, rest) :]

    def keep(self) -> None:
        with self._open(self._keeping) as handle:
            os.fsync(handle)
            if not self._is_named:
                sync_directory(self._path.parent)
                self._is_named = True

    def move_to(self, target: Path) -> None:
        with self._open(self._writing, self._keeping) as handle:
            os.utime(handle)  # under its key it is new, however long ago its last byte came
            os.fsync(handle)
            os.replace(self._path, target)

    def close(self) -> None:
        """Let go; a file without a byte is not worth keeping."""
        with self._open(self._writing, self._keeping) as handle:
            self._closed = True
            if os.fstat(handle).st_size == 0:
                self._path.unlink(missing_ok=True)
            os.close(handle)


def sync_directory(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def forget(path: Path) -> None:
    """Remove a file unless somebody is writing to it."""
    try:
        handle = _open_locked(path)
    except FileNotFoundError:
        return
    path.unlink(missing_ok=True)
    os.close(handle)


def begun(folder: Path, older_than_s: float) -> tuple[str, ...]:
    """Name what lies below a folder and was not written to for so long."""
    oldest, found = time.time() - older_than_s, []
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):  # moved into place since
            if path.is_file() and path.stat().st_mtime < oldest:
                found.append(path.relative_to(folder).as_posix())
    return tuple(sorted(found))


def _open_locked(path: Path, create: int = 0) -> int:
    """Open and lock what has this name. Between the two it may have been moved into place: then it is not ours."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC | create, 0o666)
        try:
            _lock(handle)
            if path.stat().st_ino == os.fstat(handle).st_ino:
                return handle
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _lock(handle: int) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise ObjectBusy("Somebody else is writing this file.") from error
    except OSError:
        pass  # no locks on this file system
