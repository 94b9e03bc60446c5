"""Objects that come in pieces: what was kept is there after a crash, and one writes at a time."""

import os
import sys
from pathlib import Path

import pytest

from contracts.errors import ObjectBusy, ObjectMissing
from storage.local import LocalStore
from storage.store import ResumableStore

KEY = "uploads/1.mp4"


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "store")


def files(store: LocalStore) -> dict[str, bytes]:
    return {p.relative_to(store.root).as_posix(): p.read_bytes() for p in store.root.rglob("*") if p.is_file()}


async def test_pieces_become_one_object_and_what_nobody_counted_is_cut_off(store: LocalStore) -> None:
    assert isinstance(store, ResumableStore)
    async with store.resume(KEY) as writer:
        await writer.go_on(0)
        await writer.write(b"abc")
        assert await writer.keep() == 3
        await writer.write(b"lost in a crash")
    assert await store.list("uploads/") == [] and await store.stat(KEY) is None
    assert await store.remove_unfinished("uploads/", older_than_s=-1) == 0
    async with store.resume(KEY) as writer:
        await writer.go_on(3)
        await writer.write(b"def")
        assert (await writer.keep(), writer.size_bytes) == (6, 6)
        await writer.commit()
    assert files(store) == {KEY: b"abcdef"}


async def test_one_writes_at_a_time_and_nobody_forgets_what_is_being_written(store: LocalStore) -> None:
    async with store.resume(KEY) as writer:
        await writer.go_on(0)
        await writer.write(b"abc")
        with pytest.raises(ObjectBusy):
            async with store.resume(KEY):
                pass
        with pytest.raises(ObjectBusy):
            await store.forget(KEY)
        async with store.resume("uploads/2.mp4"):
            pass
    assert files(store) == {"partial/" + KEY: b"abc"}
    await store.forget(KEY)
    await store.forget(KEY)
    assert files(store) == {}


async def test_less_than_was_counted_is_missing_and_an_opened_file_leaves_nothing(store: LocalStore) -> None:
    async with store.resume(KEY) as writer:
        with pytest.raises(ObjectMissing):
            await writer.go_on(1)
    assert files(store) == {}


async def test_who_waited_for_a_file_that_was_moved_into_place_does_not_write_to_it(store: LocalStore) -> None:
    async with store.resume(KEY) as writer:
        await writer.go_on(0)
        await writer.write(b"whole")
        await writer.commit()
        # The name is free again while the first one still holds its file.
        async with store.resume(KEY) as second:
            await second.go_on(0)
            await second.write(b"x")
    assert files(store) == {KEY: b"whole", "partial/" + KEY: b"x"}


@pytest.mark.parametrize("key", ["../x", "/etc/x", "a/../../x", ""])
async def test_no_piece_leaves_the_root(store: LocalStore, key: str) -> None:
    with pytest.raises(ValueError):
        async with store.resume(key):
            pass
    with pytest.raises(ValueError):
        await store.forget(key)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_what_is_kept_has_a_name_that_outlives_a_power_cut(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    monkeypatch.setattr(
        "storage.partial.os.fsync", lambda handle: synced.append(os.readlink(f"/proc/self/fd/{handle}"))
    )
    async with store.resume(KEY) as writer:
        await writer.go_on(0)
        await writer.write(b"abc")
        await writer.keep()
        await writer.keep()
    file = str(store.root / "partial" / KEY)
    assert synced == [file, str(Path(file).parent), file]
