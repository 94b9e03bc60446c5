"""Files as objects: whole or not there, first one wins, nothing leaves the root."""

import asyncio
from pathlib import Path

import pytest

from contracts.errors import ObjectMissing
from storage.local import LocalStore


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "store")


async def test_the_first_verified_segment_wins(store: LocalStore) -> None:
    results = await asyncio.gather(
        *(store.put_bytes("videos/a/seg_00000.m4s", bytes([n]) * 100, create_only=True) for n in range(8))
    )
    assert results.count(True) == 1
    winner = results.index(True)
    assert await store.read_bytes("videos/a/seg_00000.m4s") == bytes([winner]) * 100


async def test_a_put_file_from_scratch_is_a_link_not_a_copy(store: LocalStore) -> None:
    async with store.scratch("step") as here:
        made = here / "seg.m4s"
        made.write_bytes(b"x" * 1000)
        inode = made.stat().st_ino
        assert await store.put_file("videos/a/seg.m4s", made, create_only=True)
        assert not await store.put_file("videos/a/seg.m4s", made, create_only=True)
    assert (store.root / "videos/a/seg.m4s").stat().st_ino == inode
    assert list((store.root / "scratch").iterdir()) == []


async def test_an_upload_that_is_not_committed_leaves_nothing(store: LocalStore) -> None:
    with pytest.raises(RuntimeError):
        async with store.writer("uploads/1.mp4") as writer:
            await writer.write(b"half")
            raise RuntimeError("the client went away")
    assert await store.stat("uploads/1.mp4") is None
    assert list((store.root / "uploads").iterdir()) == []


async def test_a_committed_upload_is_whole_and_listed(store: LocalStore) -> None:
    async with store.writer("uploads/1.mp4") as writer:
        await writer.write(b"abc")
        assert await store.list("uploads/") == []  # invisible until committed
        await writer.write(b"def")
        await writer.commit()
    assert [facts.size_bytes for facts in await store.list("uploads/")] == [6]
    chunks = [chunk async for chunk in store.read("uploads/1.mp4", start=2, length=3)]
    assert b"".join(chunks) == b"cde"


@pytest.mark.parametrize("key", ["../x", "/etc/passwd", "a/../../b", "a//b", "", "a/\0", "a\\..\\b", "."])
async def test_a_key_never_leaves_the_root(store: LocalStore, key: str) -> None:
    with pytest.raises(ValueError):
        await store.put_bytes(key, b"")


async def test_replacing_a_manifest_changes_its_etag(store: LocalStore) -> None:
    await store.put_bytes("m", b"1")
    before = await store.stat("m")
    await store.put_bytes("m", b"2")
    after = await store.stat("m")
    assert before and after and before.etag != after.etag
    with pytest.raises(ObjectMissing):
        await store.read_bytes("none")
