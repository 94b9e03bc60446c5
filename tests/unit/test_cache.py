"""Copies of sources on a worker's disk: fetched once, never half, never taken from who reads them."""

import asyncio
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from contracts.errors import ScratchFull, StorageUnavailable
from storage import cache as cache_module
from storage.cache import Cache, Lent

SIZE = 1000


class Source:
    """Bytes far away, which come in pieces; says how often and from where on it was asked."""

    def __init__(self, name: str, size: int = SIZE, *, pieces: int = 4) -> None:
        self.name, self.data = name, name.encode() * (size // len(name))
        self.pieces, self.asked = pieces, list[int]()
        self.gate = asyncio.Event()
        self.gate.set()

    async def fetch(self, start: int) -> AsyncIterator[bytes]:
        self.asked.append(start)
        step = len(self.data) // self.pieces
        for at in range(start, len(self.data), step):
            yield self.data[at : at + step]
            await self.gate.wait()

    async def lent_by(self, cache: Cache) -> Lent:
        return await cache.lend(self.name, len(self.data), self.fetch)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def room_for(folder: Path, sources: float) -> Cache:
    return Cache(folder, limit_bytes=int(sources * SIZE), reserve_bytes=0)


async def use(cache: Cache, source: Source) -> None:
    lent = await source.lent_by(cache)
    assert lent.path.read_bytes() == source.data
    lent.give_back()
    # Files of the same instant have no order.
    for path in cache._folder.iterdir():
        os.utime(path, (path.stat().st_atime, path.stat().st_mtime - 10))


async def test_all_who_ask_at_once_share_one_download(folder: Path) -> None:
    source, caches = Source("a"), [room_for(folder, 2) for _ in range(3)]
    source.gate.clear()
    asking = [asyncio.create_task(source.lent_by(cache)) for cache in caches * 3]
    while not source.asked:
        await asyncio.sleep(0.01)
    source.gate.set()
    lent = await asyncio.gather(*asking)
    assert source.asked == [0]
    assert {one.path.read_bytes() for one in lent} == {source.data}
    for one in lent:
        one.give_back()


async def test_a_copy_outlives_its_process_and_is_lent_again(folder: Path) -> None:
    source = Source("a")
    await use(room_for(folder, 2), source)
    await use(room_for(folder, 2), source)
    assert source.asked == [0]


async def test_half_a_download_is_never_lent_and_is_gone_on_with(folder: Path) -> None:
    source, cache = Source("a"), room_for(folder, 2)
    source.gate.clear()
    asking = asyncio.create_task(source.lent_by(cache))
    while not any(path.stat().st_size for path in folder.glob("*.part")):
        await asyncio.sleep(0.01)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    source.gate.set()
    await use(cache, source)
    assert source.asked == [0, 250]


def slowly(monkeypatch: pytest.MonkeyPatch, what: str) -> list[int]:
    """Let a disk be slow with one kind of work; gives which files it was at, when it was done with them."""
    real, worked_on = getattr(cache_module, what), list[int]()

    def work(*args: Any) -> Any:
        given = args[0] if type(args[0]) is int else None
        time.sleep(0.2)
        done = real(*args)
        handle = given if given is not None else done
        worked_on.append(os.fstat(handle).st_ino)
        return done

    monkeypatch.setattr(cache_module, what, work)
    return worked_on


async def cut_short(cache: Cache, source: Source) -> None:
    asking = asyncio.create_task(source.lent_by(cache))
    await asyncio.sleep(0.1)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking


async def test_who_is_cancelled_while_a_download_begins_leaves_it_to_the_next(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, cache = Source("a"), room_for(folder, 2)
    with monkeypatch.context() as slow:
        begun = slowly(slow, "_claimed")
        await cut_short(cache, source)
    while not begun:
        await asyncio.sleep(0.01)
    async with asyncio.timeout(5):  # and does not wait for ever for one who has gone
        await use(cache, source)


async def test_who_is_cancelled_while_a_copy_is_lent_does_not_keep_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, cache = Source("a"), room_for(folder, 1)
    await use(cache, source)
    with monkeypatch.context() as slow:
        found = slowly(slow, "_borrowed")
        await cut_short(cache, source)
    while not found:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)
    await use(cache, Source("b"))  # takes its place


async def test_a_file_stays_open_while_a_thread_writes_to_it_though_its_step_is_cancelled(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, cache = Source("a"), room_for(folder, 2)
    with monkeypatch.context() as slow:
        written = slowly(slow, "_append")
        await cut_short(cache, source)
    [part] = folder.glob("*.part")
    assert written == [part.stat().st_ino]
    await use(cache, source)


async def test_a_download_that_ends_early_is_no_copy(folder: Path) -> None:
    source, cache = Source("a"), room_for(folder, 4)
    with pytest.raises(StorageUnavailable):
        await cache.lend(source.name, SIZE + 1, source.fetch)
    assert [path.name for path in folder.iterdir() if not path.name.startswith(".") and path.suffix != ".part"] == []


async def test_a_copy_that_somebody_cut_is_fetched_anew(folder: Path) -> None:
    source, cache = Source("a"), room_for(folder, 2)
    lent = await source.lent_by(cache)
    lent.give_back()
    os.truncate(lent.path, 10)
    await use(cache, source)
    assert source.asked == [0, 0]


async def test_what_was_not_used_for_longest_goes_first(folder: Path) -> None:
    cache, a, b, c = room_for(folder, 2), Source("a"), Source("b"), Source("c")
    for source in (a, b, a, c, a):
        await use(cache, source)
    assert (a.asked, b.asked, c.asked) == ([0], [0], [0])
    await use(cache, b)
    assert b.asked == [0, 0]


async def test_what_is_lent_stays_and_who_finds_no_room_comes_later(folder: Path) -> None:
    cache, a, b, c = room_for(folder, 2), Source("a"), Source("b"), Source("c")
    held = [await a.lent_by(cache), await b.lent_by(room_for(folder, 2))]
    for _ in range(2):
        with pytest.raises(ScratchFull):
            await c.lent_by(cache)
    assert c.asked == [] and [one.path.read_bytes() for one in held] == [a.data, b.data]
    held.pop(0).give_back()
    await use(cache, c)
    await use(cache, b)
    assert (b.asked, c.asked) == ([0], [0])
    held[0].give_back()


async def test_what_is_larger_than_all_is_let_in_alone(folder: Path) -> None:
    cache, small, huge = room_for(folder, 1), Source("a"), Source("h", 3 * SIZE)
    held = await small.lent_by(cache)
    with pytest.raises(ScratchFull):
        await huge.lent_by(cache)
    held.give_back()
    await use(cache, huge)


async def test_downloads_under_way_count_as_large_as_they_will_be(folder: Path) -> None:
    cache, a, b = room_for(folder, 1.5), Source("a"), Source("b")
    a.gate.clear()
    asking = asyncio.create_task(a.lent_by(cache))
    while not a.asked:
        await asyncio.sleep(0.01)
    with pytest.raises(ScratchFull):
        await b.lent_by(cache)
    a.gate.set()
    (await asking).give_back()
    await use(cache, b)


async def test_a_disk_without_room_is_left_alone(folder: Path) -> None:
    cache = Cache(folder, limit_bytes=None, reserve_bytes=1 << 60)
    with pytest.raises(ScratchFull):
        await Source("a").lent_by(cache)


async def test_unlimited_it_leaves_half_of_the_disk(folder: Path) -> None:
    folder.mkdir()
    cache, a = Cache(folder, limit_bytes=None, reserve_bytes=0), Source("a")
    await use(cache, a)
    huge = shutil.disk_usage(folder).free // 2 + 10 * SIZE
    lent = await a.lent_by(cache)
    with pytest.raises(ScratchFull):
        await cache.lend("huge", huge, Source("h").fetch)
    lent.give_back()


OTHER = """
import asyncio, sys, time
from pathlib import Path
from storage.cache import Cache
async def fetch(start):
    Path(sys.argv[2]).open("a").write("fetched\\n")
    for _ in range(5):
        yield b"x" * 100
        await asyncio.sleep(0.1)
async def main():
    cache = Cache(Path(sys.argv[1]), limit_bytes=600, reserve_bytes=0)
    lent = await cache.lend("shared", 500, fetch)
    assert lent.path.read_bytes() == b"x" * 500
    print("held", flush=True)
    sys.stdin.read()
asyncio.run(main())
"""


async def test_processes_of_one_machine_share_and_a_killed_one_holds_nothing(folder: Path, tmp_path: Path) -> None:
    said = tmp_path / "said"
    argv = [sys.executable, "-c", OTHER, str(folder), str(said)]
    others = [
        subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])
        for _ in range(3)
    ]
    try:
        for other in others:
            assert other.stdout is not None and other.stdout.readline() == "held\n"
        assert said.read_text() == "fetched\n"
        with pytest.raises(ScratchFull):
            await Source("a", 500).lent_by(Cache(folder, limit_bytes=600, reserve_bytes=0))
    finally:
        for other in others:
            other.kill()
            other.communicate()
    began = time.monotonic()
    (await Source("a", 500).lent_by(Cache(folder, limit_bytes=600, reserve_bytes=0))).give_back()
    assert time.monotonic() - began < 5


async def test_more_than_there_is_begins_anew(folder: Path) -> None:
    """A server, or somebody, has put too much into half a download: it would never fit."""
    source, cache = Source("a"), room_for(folder, 2)
    await use(cache, source)
    [whole] = [path for path in folder.iterdir() if not path.name.startswith(".")]
    whole.rename(f"{whole}.{SIZE}.part")
    with whole.with_name(f"{whole.name}.{SIZE}.part").open("ab") as part:
        part.write(b"too much")
    os.utime(part.name)
    with pytest.raises(StorageUnavailable):
        await source.lent_by(cache)
    await use(cache, source)
    assert source.asked == [0, SIZE + 8, 0]


async def test_half_a_download_from_before_the_machine_was_started_is_not_gone_on_with(folder: Path) -> None:
    source, cache = Source("a"), room_for(folder, 2)
    folder.mkdir()
    name = hashlib.sha256(b"a").hexdigest()[:40]
    (folder / f"{name}.{SIZE}.part").write_bytes(bytes(500))  # zeros: the disk never got the bytes
    os.utime(folder / f"{name}.{SIZE}.part", (1, 1))
    await use(cache, source)
    assert source.asked == [0]
