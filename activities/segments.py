"""Finished segments on their way from scratch to their final keys: verified first, stored once, never moved again."""

import asyncio
from pathlib import Path

from contracts.errors import OutputIncomplete
from contracts.layout import INIT, segment_index, segment_name
from media.boxes import InitFacts, canonical_init, read_init
from storage.store import Store


class RenditionFolder:
    """One rendition's folder in storage, and the init segment that all its spans must share."""

    def __init__(self, store: Store, prefix: str) -> None:
        self._store, self.prefix = store, prefix
        self.init: InitFacts | None = None

    async def present(self) -> set[int]:
        """Name the segments that are already stored; being stored means having been verified."""
        found = (segment_index(facts.key) for facts in await self._store.list(self.prefix))
        return {index for index in found if index is not None}

    async def keep_init(self, path: Path) -> InitFacts:
        """Store the init segment, or insist that it equals the one stored by another span or attempt."""
        key = self.prefix + INIT
        made = canonical_init(await asyncio.to_thread(path.read_bytes))
        facts = read_init(made)  # before it is stored: what is stored stays, and all who come later must equal it
        if not await self._store.put_bytes(key, made, create_only=True) and await self._store.read_bytes(key) != made:
            raise OutputIncomplete("The encoder's init segment differs from the one this rendition began with.")
        self.init = facts
        return facts

    async def keep(self, index: int, path: Path) -> None:
        await self._store.put_file(self.prefix + segment_name(index), path, create_only=True)


def finished_segments(folder: Path, after: int) -> list[tuple[int, Path]]:
    """Name the whole segments from `after` on, in order, without a gap.

    ffmpeg writes `….m4s.tmp` and renames when a segment is closed, so a name without `.tmp` is whole.
    """
    found = []
    while (path := folder / segment_name(after)).is_file():
        found.append((after, path))
        after += 1
    return found
