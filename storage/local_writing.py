"""Writing files below the root of a local storage, in one go or in pieces that outlive a crash."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, ParamSpec, TypeVar

from contracts.errors import ObjectMissing, ScratchFull, StorageUnavailable
from storage.partial import PartialFile, sync_directory

P = ParamSpec("P")
R = TypeVar("R")


async def in_thread(call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run blocking file work off the event loop and speak storage's language about what goes wrong."""
    try:
        return await asyncio.to_thread(call, *args, **kwargs)
    except FileNotFoundError as error:
        raise ObjectMissing("A stored file is missing.") from error
    except OSError as error:
        if error.errno in (28, 122):  # ENOSPC, EDQUOT
            raise ScratchFull("The storage disk is full.") from error
        raise StorageUnavailable(f"Storage did not answer: {error.strerror or 'input/output error'}.") from error


class LocalWriter:
    """Writes beside the target; `commit` makes it durable and moves it into place."""

    def __init__(self, file: IO[bytes], temporary: Path, target: Path) -> None:
        self._file, self._temporary, self._target = file, temporary, target
        self.size_bytes = 0

    async def write(self, chunk: bytes) -> None:
        await in_thread(self._file.write, chunk)
        self.size_bytes += len(chunk)

    async def commit(self) -> None:
        def into_place() -> None:
            self._file.flush()
            os.fsync(self._file.fileno())
            os.replace(self._temporary, self._target)
            sync_directory(self._target.parent)

        await in_thread(into_place)


class LocalPartial:
    """Goes on with a file below `partial/`; `commit` moves it into place."""

    def __init__(self, file: PartialFile, target: Path, make: Callable[[Path], None]) -> None:
        self._file, self._target, self._make = file, target, make
        self.size_bytes = 0

    async def go_on(self, at: int) -> None:
        await in_thread(self._file.go_on, at)
        self.size_bytes = at

    async def write(self, chunk: bytes) -> None:
        await in_thread(self._file.write, chunk)
        self.size_bytes += len(chunk)

    async def keep(self, counted: int | None = 0) -> int:
        size_bytes = self.size_bytes  # more may be written meanwhile
        await in_thread(self._file.keep)
        return size_bytes

    async def commit(self) -> None:
        def into_place() -> None:
            self._make(self._target.parent)
            self._file.move_to(self._target)
            sync_directory(self._target.parent)

        await in_thread(into_place)
