"""An upload that comes in pieces: it grows on this machine's disk, and goes to the bucket when it is whole.

S3 takes no pieces below 5 MB, cannot cut one off, and knows no locks. So its pieces stay with one machine: whoever
sends the next one must come back to it, or machines share the folder.
"""

import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from contracts.errors import ObjectBusy
from storage.local import LocalPartial
from storage.partial import PartialFile, forget

FORGOTTEN_S = 7 * 24 * 3600.0  # housekeeping may run on another machine; nobody goes on with an upload so old


class S3Partial(LocalPartial):
    def __init__(self, file: PartialFile, path: Path, put: Callable[[Path], Awaitable[bool]]) -> None:
        super().__init__(file, path)
        self._put = put

    async def commit(self) -> None:
        await self.keep()
        await self._put(self._target)
        await self.go_on(0)  # nothing is left of it here


def forget_old(folder: Path) -> None:
    """Remove what was begun here and left alone for a week."""
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError, ObjectBusy):
            if path.is_file() and path.stat().st_mtime < time.time() - FORGOTTEN_S:
                forget(path)
