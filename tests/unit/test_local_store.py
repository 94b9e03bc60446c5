"""What is a folder's own: publishing is a link, half a write a hidden file. The rest: tests/integration/storage."""

from pathlib import Path

import pytest

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
