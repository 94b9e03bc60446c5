"""Scratch goes when its process is dead, never before."""

import errno
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from storage.local import LocalStore
from storage.scratch import Scratch, remove_abandoned

OTHER = """
import sys, time
from pathlib import Path
from storage.local import LocalStore
from storage.scratch import Scratch
here = Scratch(Path(sys.argv[1])).lend("job1-transcode")
(here / "half.m4s").write_bytes(b"x")
print(here, flush=True)
time.sleep(600)
"""


def left(root: Path) -> list[str]:
    return [path.name for path in root.iterdir()]


def test_the_scratch_of_a_living_process_stays_and_that_of_a_killed_one_goes(tmp_path: Path) -> None:
    root = tmp_path / "scratch"
    root.mkdir()
    other = subprocess.Popen([sys.executable, "-c", OTHER, str(root)], stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout is not None
        here = Path(other.stdout.readline().strip())
        assert here.is_dir()
        assert remove_abandoned(root, limit=10) == 0
        assert (here / "half.m4s").exists()
    finally:
        other.kill()
        other.communicate()
    assert remove_abandoned(root, limit=10) == 1
    assert left(root) == []
    assert remove_abandoned(root, limit=10) == 0


def test_own_scratch_stays_while_it_is_lent_and_leaves_nothing(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    one, two = scratch.lend("a:b/c"), scratch.lend("d")
    scratch.take_back(one)
    assert remove_abandoned(tmp_path, limit=10) == 0
    assert two.is_dir() and not one.exists()
    scratch.take_back(two)
    assert left(tmp_path) == []
    scratch.take_back(scratch.lend("e"))
    assert left(tmp_path) == []


def test_a_disk_that_was_full_or_tidied_up_is_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    scratch = Scratch(tmp_path)
    for owner, call in ((Path, "mkdir"), (os, "write")):
        with monkeypatch.context() as disk, pytest.raises(OSError, match="No space"):
            disk.setattr(owner, call, full)
            scratch.lend("a")
        assert left(tmp_path) == []
    one = scratch.lend("a")
    shutil.rmtree(one.parent)
    two = scratch.lend("b")
    assert two.is_dir()
    scratch.take_back(one)
    scratch.take_back(two)
    assert left(tmp_path) == []


def test_another_machines_scratch_must_be_old_as_well(tmp_path: Path) -> None:
    (tmp_path / "abc").mkdir()
    lock = tmp_path / ".abc.lock"
    lock.write_text("another-machine")
    assert remove_abandoned(tmp_path, limit=10) == 0
    os.utime(lock, (time.time() - 90000,) * 2)
    assert remove_abandoned(tmp_path, limit=10) == 1
    assert left(tmp_path) == []


def test_sweeping_beside_those_who_move_in_takes_nothing_from_them(tmp_path: Path) -> None:
    scratch, done = Scratch(tmp_path), threading.Event()

    def sweep() -> None:
        while not done.is_set():
            remove_abandoned(tmp_path, limit=10)

    sweeper = threading.Thread(target=sweep)
    sweeper.start()
    try:
        for _ in range(300):
            here = scratch.lend("step")
            (here / "file").write_bytes(b"x")
            assert (here / "file").exists()
            scratch.take_back(here)
    finally:
        done.set()
        sweeper.join()
    assert left(tmp_path) == []


WRITER = """
import asyncio, sys
from pathlib import Path
from storage.local import LocalStore
async def write():
    async with LocalStore(Path(sys.argv[1])).writer("uploads/1.mp4") as writer:
        await writer.write(b"x" * 10000000)
        print("written", flush=True)
        await asyncio.sleep(600)
asyncio.run(write())
"""


async def test_half_an_upload_goes_when_its_writer_is_dead_and_not_before(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert writer.stdout is not None and writer.stdout.readline() == "written\n"
        [half] = (tmp_path / "uploads").iterdir()
        os.utime(half, (time.time() - 60,) * 2)
        assert await store.remove_unfinished("uploads/", older_than_s=86400) == 0
    finally:
        writer.kill()
        writer.communicate()
    os.utime(half, (time.time() - 60,) * 2)
    assert await store.remove_unfinished("uploads/", older_than_s=86400) == 1
    assert left(tmp_path / "uploads") == []
