"""What every kind of storage promises: objects whole or not there, first one wins, nothing leaves the root."""

import asyncio
from pathlib import Path

import pytest

from contracts.errors import ObjectBusy, ObjectMissing
from storage.store import ResumableStore, Store


async def collected(store: Store, key: str, *, start: int = 0, length: int | None = None) -> bytes:
    return b"".join([chunk async for chunk in store.read(key, start=start, length=length)])


async def test_the_first_verified_segment_wins(store: Store) -> None:
    results = await asyncio.gather(
        *(store.put_bytes("videos/a/seg_00000.m4s", bytes([n]) * 100, create_only=True) for n in range(8))
    )
    assert results.count(True) == 1
    winner = results.index(True)
    assert await store.read_bytes("videos/a/seg_00000.m4s") == bytes([winner]) * 100


async def test_a_file_is_taken_from_scratch_once(store: Store) -> None:
    async with store.scratch("step") as here:
        made = here / "seg.m4s"
        made.write_bytes(b"x" * 1000)
        assert await store.put_file("videos/a/seg.m4s", made, create_only=True)
        assert not await store.put_file("videos/a/seg.m4s", made, create_only=True)
        made.write_bytes(b"y" * 10)
        assert await store.put_file("videos/a/seg.m4s", made)
    assert not here.exists()
    assert await store.read_bytes("videos/a/seg.m4s") == b"y" * 10


async def test_an_upload_that_is_not_committed_leaves_nothing(store: Store) -> None:
    with pytest.raises(RuntimeError):
        async with store.writer("uploads/1.mp4") as writer:
            await writer.write(b"half")
            raise RuntimeError("the client went away")
    assert await store.stat("uploads/1.mp4") is None
    assert await store.list("uploads/") == []


async def test_a_committed_upload_is_whole_and_listed(store: Store) -> None:
    async with store.writer("uploads/1.mp4") as writer:
        await writer.write(b"abc")
        assert await store.list("uploads/") == []  # invisible until committed
        await writer.write(b"def")
        await writer.commit()
    assert [facts.size_bytes for facts in await store.list("uploads/")] == [6]
    assert await collected(store, "uploads/1.mp4", start=2, length=3) == b"cde"


async def test_a_range_ends_where_the_object_does(store: Store) -> None:
    await store.put_bytes("a", b"abcdef")
    await store.put_bytes("empty", b"")
    assert await collected(store, "a", start=4, length=100) == b"ef"
    assert await collected(store, "a", start=100) == b""
    assert await collected(store, "a", length=0) == b""
    assert await collected(store, "empty") == b""
    with pytest.raises(ObjectMissing):
        await collected(store, "none")


@pytest.mark.parametrize("key", ["../x", "/etc/passwd", "a/../../b", "a//b", "", "a/\0", "a\\..\\b", "."])
async def test_a_key_never_leaves_the_root(store: Store, key: str) -> None:
    for deed in (store.put_bytes(key, b""), store.read_bytes(key), store.stat(key), store.delete(key)):
        with pytest.raises(ValueError):
            await deed
    with pytest.raises(ValueError):
        await store.put_file(key, Path(__file__))
    with pytest.raises(ValueError):
        async with store.local_file(key):
            pass


async def test_replacing_a_manifest_changes_its_etag(store: Store) -> None:
    await store.put_bytes("m", b"1")
    before = await store.stat("m")
    await store.put_bytes("m", b"2")
    after = await store.stat("m")
    assert before and after and before.etag != after.etag
    assert [facts.etag for facts in await store.list("m")] in ([], [after.etag])
    with pytest.raises(ObjectMissing):
        await store.read_bytes("none")


async def test_a_prefix_is_a_folder_not_the_beginning_of_a_name(store: Store) -> None:
    for key in ("videos/a/r1/360p/seg_00001.m4s", "videos/a/r1/360p/seg_00000.m4s", "videos/a/m", "videos/ab/m"):
        await store.put_bytes(key, b"x")
    assert await store.folders("videos/") == ("a", "ab")
    assert await store.folders("videos/a/r1/") == ("360p",)
    assert await store.folders("videos/none/") == ()
    listed = [facts.key for facts in await store.list("videos/a/r1/")]
    assert listed == ["videos/a/r1/360p/seg_00000.m4s", "videos/a/r1/360p/seg_00001.m4s"]
    assert {facts.etag for facts in await store.list("videos/a/")} != {""}
    await store.delete_prefix("videos/a/")
    assert [facts.key for facts in await store.list("videos/")] == ["videos/ab/m"]
    await store.delete_prefix("videos/a/")
    await store.delete("videos/ab/m")
    await store.delete("videos/ab/m")
    assert await store.list("videos/") == []


async def test_ffmpeg_is_lent_a_file_with_the_very_bytes(store: Store) -> None:
    await store.put_bytes("uploads/1.mp4", b"first")
    async with store.local_file("uploads/1.mp4") as path:
        assert path.read_bytes() == b"first"
    await store.put_bytes("uploads/1.mp4", b"second")
    async with store.local_file("uploads/1.mp4") as path:
        assert path.read_bytes() == b"second"
    with pytest.raises(ObjectMissing):
        async with store.local_file("uploads/2.mp4"):
            pass


async def test_pieces_become_one_object_and_what_nobody_counted_is_cut_off(store: Store) -> None:
    assert isinstance(store, ResumableStore)
    async with store.resume("uploads/1.mp4") as writer:
        await writer.go_on(0)
        await writer.write(b"abc")
        assert await writer.keep() == 3
        await writer.write(b"lost in a crash")
    assert await store.stat("uploads/1.mp4") is None
    assert await store.begun(older_than_s=-1) == ("uploads/1.mp4",)
    assert await store.begun(older_than_s=60) == ()
    async with store.resume("uploads/1.mp4") as writer:
        await writer.go_on(3)
        await writer.write(b"def")
        with pytest.raises(ObjectBusy):
            await store.forget("uploads/1.mp4")
        await writer.commit()
    assert await store.read_bytes("uploads/1.mp4") == b"abcdef"
    async with store.resume("uploads/1.mp4") as writer:
        with pytest.raises(ObjectMissing):
            await writer.go_on(1)  # nothing of it is left where pieces grow
    with pytest.raises(ValueError):
        async with store.resume("../x"):
            pass


async def test_storage_that_answers_passes_its_check(store: Store) -> None:
    await store.check()
    assert await store.free_bytes() > 0
    assert await store.remove_abandoned(limit=10) == 0
    assert await store.remove_unfinished("uploads/", older_than_s=60) == 0
