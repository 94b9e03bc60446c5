"""What is a folder's own: publishing is a link, half a write a hidden file. The rest: tests/integration/storage."""

import errno
import os
import shutil
from pathlib import Path
from typing import NoReturn

import pytest

from contracts.errors import StorageUnavailable
from storage.local import LocalStore


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "store")


async def test_a_put_file_from_scratch_is_a_link_not_a_copy(store: LocalStore) -> None:
    async with store.scratch("step") as here:
        made = here / "seg.m4s"
        made.write_bytes(b"x" * 1000)
        inode = made.stat().st_ino
        assert await store.put_file("videos/a/seg.m4s", made, create_only=True)
    assert (store.root / "videos/a/seg.m4s").stat().st_ino == inode
    assert list((store.root / "scratch").iterdir()) == []


async def test_an_upload_that_is_not_committed_leaves_no_file(store: LocalStore) -> None:
    with pytest.raises(RuntimeError):
        async with store.writer("uploads/1.mp4") as writer:
            await writer.write(b"half")
            raise RuntimeError("the client went away")
    assert list((store.root / "uploads").iterdir()) == []


async def test_of_a_disk_that_is_not_mounted_nothing_is_missing_and_nothing_is_put_in_its_place(tmp_path: Path) -> None:
    """Else a source would be gone for good, a rendition not whole, and a stream published where nobody finds it."""
    videos = 0
    store = LocalStore(tmp_path / "store", is_new=lambda: not videos)
    await store.put_bytes("uploads/1.mp4", b"film")
    videos = 1
    elsewhere = store.root.rename(store.root.with_name("elsewhere"))
    store.root.mkdir()

    async def lend() -> None:
        async with store.local_file("uploads/1.mp4"):
            pass

    async def receive() -> None:
        async with store.writer("uploads/2.mp4"):
            pass

    async def go_on() -> None:
        async with store.resume("uploads/3.mp4"):
            pass

    for ask in (
        store.check,
        lend,
        receive,
        go_on,
        lambda: store.stat("uploads/1.mp4"),
        lambda: store.list("uploads/"),
        lambda: store.folders("uploads"),
        lambda: store.put_bytes("videos/x/master.m3u8", b""),
        lambda: store.delete("uploads/1.mp4"),
        lambda: store.delete_prefix("videos/x/"),
    ):
        with pytest.raises(StorageUnavailable):
            await ask()
    assert list(store.root.iterdir()) == []
    store.root.rmdir()
    elsewhere.rename(store.root)
    await store.check()
    assert await store.stat("uploads/1.mp4") is not None


async def test_who_starts_before_the_disk_is_mounted_makes_nothing_and_goes_on_when_it_is(tmp_path: Path) -> None:
    """Else an upload would lie below the mount, where nobody finds it again."""
    disk = LocalStore(tmp_path / "disk")
    await disk.put_bytes("uploads/1.mp4", b"film")
    folder = tmp_path / "storage"
    for left in (None, [], ["scratch"]):  # below the mount: nothing, a folder, what a start before the first video made
        if left is not None:
            folder.mkdir(exist_ok=True)
            for name in left:
                (folder / name).mkdir()
        store = LocalStore(folder, is_new=lambda: False)
        with pytest.raises(StorageUnavailable, match="mounted"):
            await store.check()
        with pytest.raises(StorageUnavailable):
            await store.put_bytes("uploads/2.mp4", b"film")
        assert [found.name for found in folder.glob("**/*")] == (left or [])
    shutil.rmtree(folder)
    shutil.rmtree(disk.root / "scratch")  # as a backup would have it
    disk.root.rename(folder)
    await store.check()
    assert await store.read_bytes("uploads/1.mp4") == b"film"


async def test_before_the_first_video_a_folder_is_made_whenever_it_is_not_there(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "storage")
    assert not store.root.exists(), "who only opens it makes nothing"
    await store.check()
    shutil.rmtree(store.root)
    await store.check()
    await store.put_bytes("uploads/1.mp4", b"film")


async def test_an_upload_whose_disk_goes_away_before_its_end_makes_nothing_below_the_mount(tmp_path: Path) -> None:
    videos = 0
    store = LocalStore(tmp_path / "storage", is_new=lambda: not videos)
    async with store.resume("uploads/1.mp4") as writer:
        await writer.go_on(0)
        await writer.write(b"film")
        videos = 1  # of somebody else's
        elsewhere = store.root.rename(tmp_path / "elsewhere")
        with pytest.raises(StorageUnavailable, match="mounted"):
            await writer.commit()
        assert not store.root.exists()
        (elsewhere / "videos").mkdir()
        elsewhere.rename(store.root)
        await writer.commit()
    assert await store.read_bytes("uploads/1.mp4") == b"film"


async def test_what_could_not_be_removed_is_not_called_removed(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.put_bytes("videos/x/r1/360p/seg_00000.m4s", b"x")
    unlink = os.unlink

    def broken(path: str, *, dir_fd: int | None = None) -> None:
        if path.endswith(".m4s"):
            raise OSError(errno.EIO, "Input/output error", path)
        unlink(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", broken)
    with pytest.raises(StorageUnavailable, match="Input/output error"):
        await store.delete_prefix("videos/x/")
    monkeypatch.undo()
    await store.delete_prefix("videos/x/")
    await store.delete_prefix("videos/x/")
    assert await store.list("videos/") == []


async def test_a_folder_that_cannot_be_read_is_not_an_empty_one(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.put_bytes("videos/x/r1/360p/seg_00000.m4s", b"x")

    def broken(path: str) -> NoReturn:
        raise OSError(errno.EIO, "Input/output error", path)

    monkeypatch.setattr(os, "scandir", broken)
    with pytest.raises(StorageUnavailable, match="Input/output error"):
        await store.list("videos/x/r1/360p/")
