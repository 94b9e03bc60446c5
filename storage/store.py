"""What every kind of storage can do. The rest of the project knows only this page."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol, runtime_checkable


@dataclass(frozen=True)
class ObjectFacts:
    key: str
    size_bytes: int
    modified_at: datetime
    etag: str  # strong: equal tags mean equal bytes


class ObjectWriter(Protocol):
    """A growing object that exists under its key only after `commit`."""

    size_bytes: int

    async def write(self, chunk: bytes) -> None: ...

    async def commit(self) -> None: ...


class ResumableWriter(ObjectWriter, Protocol):
    """A writer that goes on where another stopped, perhaps in a process that was killed; leaving it keeps all.

    First `go_on`; an object of which nothing is there yet goes on at 0.
    """

    async def go_on(self, at: int) -> None:
        """Go on behind the first `at` bytes, and cut off what lies beyond; ObjectMissing when less is there."""
        ...

    async def keep(self, counted: int | None = 0) -> int:
        """Make what was written last through a crash, and say up to where: from there on one can go on later.

        More may be written meanwhile. Nobody will go on before `counted`; None: nor behind what is kept now, for
        nobody is told of it.
        """
        ...


@runtime_checkable
class ResumableStore(Protocol):
    """What a store may do besides: objects that come in pieces, over many requests. tus is offered where it can."""

    def resume(self, key: str) -> AbstractAsyncContextManager[ResumableWriter]:
        """Take up an object that is not under its key yet; ObjectBusy while anybody else has it, in whatever process.

        Nothing of it is forgotten by itself: neither `remove_unfinished` nor `remove_abandoned` touches it.
        """
        ...

    async def forget(self, key: str) -> None:
        """Drop what is there of an object that was never committed; ObjectBusy as above."""
        ...

    async def begun(self, *, older_than_s: float) -> tuple[str, ...]:
        """Name the objects that were begun, not committed, and not written to for so long."""
        ...


class Store(Protocol):
    async def put_file(self, key: str, path: Path, *, create_only: bool = False) -> bool:
        """Take a finished file; False when `create_only` and somebody was first."""
        ...

    async def put_bytes(self, key: str, data: bytes, *, create_only: bool = False) -> bool: ...

    async def read_bytes(self, key: str) -> bytes: ...

    async def stat(self, key: str) -> ObjectFacts | None: ...

    async def list(self, prefix: str) -> list[ObjectFacts]:
        """Name everything below a prefix, in key order."""
        ...

    def read(self, key: str, *, start: int = 0, length: int | None = None) -> AsyncIterator[bytes]: ...

    def writer(self, key: str) -> AbstractAsyncContextManager[ObjectWriter]:
        """Open a new object for writing; leaving without `commit` leaves nothing behind."""
        ...

    async def link(self, key: str) -> str | None:
        """Give an address at which anybody may read this object for a while; None: it is read only through us."""
        ...

    async def delete(self, key: str) -> None: ...

    async def delete_prefix(self, prefix: str) -> None: ...

    async def folders(self, prefix: str) -> tuple[str, ...]:
        """Name the folders directly below a prefix, without what lies in them."""
        ...

    async def remove_unfinished(self, prefix: str, *, older_than_s: float) -> int:
        """Remove half-written objects below a prefix, and count them.

        Those whose writer is known to be dead, and those that nobody has written to for so long.
        """
        ...

    async def remove_abandoned(self, *, limit: int) -> int:
        """Remove the scratch of processes that have died, never that of living ones, and count them."""
        ...

    def local_file(self, key: str) -> AbstractAsyncContextManager[Path]:
        """Lend a path that ffmpeg may open: ffmpeg never sees a URL."""
        ...

    def scratch(self, name: str) -> AbstractAsyncContextManager[Path]:
        """Lend an empty directory, gone afterwards, from which `put_file` costs no copy where that is possible."""
        ...

    async def free_bytes(self) -> int:
        """Say how much can still be written where scratch lies."""
        ...

    async def check(self) -> None:
        """Raise StorageUnavailable unless bytes can be written and read now."""
        ...
