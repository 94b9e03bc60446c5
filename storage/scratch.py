"""Scratch that tells whether its owner lives: a folder per process, beside a file that the process keeps locked.

The kernel drops the lock when the process dies, however it dies. So whoever gets the lock knows that nobody needs
the folder, and no table is asked. Where files cannot be locked nothing is ever taken for abandoned, and on a disk
that machines share, whose locks may not reach each other, another machine's scratch must be a day old as well.
"""

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import socket
import tempfile
import threading
import time
import uuid
from pathlib import Path

FOREIGN_S = 24 * 3600.0
SETTLE_S = 5.0  # between making a file and locking it lie microseconds

# Ends the name of a file that its writer on this machine keeps locked.
HERE = f"-{hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8]}"

_UNSAFE_NAME = re.compile(r"[^A-Za-z0-9._+,-]")


class Scratch:
    """The scratch of one process below `root`; there while something is lent, and gone with the last of it.

    `root` is somebody else's to make: where it is gone, perhaps with the disk that it is on, nothing is lent.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._guard = threading.Lock()
        self._lent = 0
        self._own: Path | None = None
        self._lock: int | None = None

    def lend(self, name: str) -> Path:
        with self._guard:
            if self._own is not None and not self._own.is_dir():  # somebody has tidied up
                self._leave()
            if self._own is None:
                self._move_in()
            assert self._own is not None
            here = Path(tempfile.mkdtemp(prefix=_UNSAFE_NAME.sub("_", name)[:80] + ".", dir=self._own))
            self._lent += 1
            return here

    def take_back(self, here: Path) -> None:
        shutil.rmtree(here, ignore_errors=True)
        with self._guard:
            self._lent -= 1
            if self._lent == 0:
                self._leave()

    def _move_in(self) -> None:
        lock = None
        while lock is None:
            own = self._root / uuid.uuid4().hex
            # Locked before the folder exists, so that no folder is ever seen without its lock.
            lock = _locked(_lock_of(own))
        try:
            own.mkdir()
        except OSError:
            os.close(lock)
            with contextlib.suppress(OSError):
                _lock_of(own).unlink()
            raise
        self._own, self._lock = own, lock

    def _leave(self) -> None:
        if self._own is not None and self._lock is not None:
            _remove(self._own)
            os.close(self._lock)
        self._own = self._lock = None


def remove_abandoned(root: Path, *, limit: int) -> int:
    """Remove the scratch of processes that have died, and count them; that of living ones is locked."""
    removed = 0
    for lock_file in sorted(root.glob(".*.lock")):
        if removed >= limit:
            break
        with contextlib.suppress(FileNotFoundError):  # its owner has just moved out
            handle = os.open(lock_file, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_ours_or_old(handle):
                    _remove(root / lock_file.name[1 : -len(".lock")])
                    removed += 1
            except OSError:
                continue  # somebody lives there, or this file system has no locks
            finally:
                os.close(handle)
    return removed


def lock(handle: int) -> None:
    """Lock a file for as long as it is open, where that is possible."""
    with contextlib.suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def is_abandoned(path: Path) -> bool:
    """Tell a half-written file whose writer, on this machine, has died."""
    if not path.name.endswith(HERE) or path.stat().st_mtime > time.time() - SETTLE_S:
        return False
    handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except OSError:
        return False
    finally:
        os.close(handle)


def _locked(path: Path) -> int | None:
    """Make and lock a file; None when somebody took it for abandoned in between."""
    handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        path.unlink(missing_ok=True)
        return None
    except OSError:
        pass  # no locks on this file system: then nobody else gets one either
    if os.fstat(handle).st_nlink == 0:
        os.close(handle)
        return None
    try:
        os.write(handle, socket.gethostname().encode())
    except OSError:  # the disk is full
        os.close(handle)
        path.unlink(missing_ok=True)
        raise
    return handle


def _is_ours_or_old(lock: int) -> bool:
    return os.read(lock, 255) == socket.gethostname().encode() or os.fstat(lock).st_mtime < time.time() - FOREIGN_S


def _lock_of(own: Path) -> Path:
    return own.with_name(f".{own.name}.lock")


def _remove(own: Path) -> None:
    shutil.rmtree(own, ignore_errors=True)
    _lock_of(own).unlink(missing_ok=True)
