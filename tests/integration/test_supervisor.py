"""A child is started, restarted, given up and stopped; nothing of it stays behind."""

import asyncio
import itertools
import os
import signal
import sys
from pathlib import Path

import pytest

from runtime.child_logs import ChildLog
from runtime.leftovers import note_child, stop_leftovers
from runtime.processes import dying_with_us, identity
from runtime.supervisor import Child, Echo, GaveUp, Program
from tests.support.eventually import eventually


def child(program: Program, folder: Path, echo: Echo | None = None) -> Child:
    for name in ("logs", "pids"):
        (folder / name).mkdir(exist_ok=True)
    return Child(program, logs=folder / "logs", pids=folder / "pids", echo=echo)


def shell(script: str) -> tuple[str, ...]:
    return dying_with_us(("sh", "-c", script))


async def test_a_killed_child_comes_back_within_two_seconds(tmp_path: Path) -> None:
    sleeper = child(Program("sleeper", dying_with_us(("sleep", "60"))), tmp_path)
    await sleeper.start()
    first = sleeper.pid
    assert first
    os.kill(first, signal.SIGKILL)

    async def back() -> bool:
        return sleeper.is_ready and sleeper.pid not in (None, first)

    await eventually(back, within=3)
    await sleeper.stop()
    assert sleeper.pid is None and sleeper.restarts == 1
    assert list((tmp_path / "pids").iterdir()) == []


async def test_five_crashes_in_a_minute_are_enough_and_the_tail_is_told(tmp_path: Path) -> None:
    broken = child(Program("broken", shell("echo no such film >&2; exit 7"), backoff_s=0.01), tmp_path)
    with pytest.raises(GaveUp, match=r"broken exited with 7, for the 5th time in a minute") as caught:
        await broken.start()
        await broken.ended()
    assert caught.value.tail.splitlines() == ["no such film"] * 5
    await broken.stop()


async def test_backoff_doubles(tmp_path: Path) -> None:
    broken = child(Program("broken", shell("date +%s.%N; exit 1"), backoff_s=0.2), tmp_path)
    with pytest.raises(GaveUp) as caught:
        await broken.start()
        await broken.ended()
    times = [float(line) for line in caught.value.tail.splitlines()]
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert [pytest.approx(gap, abs=0.15) for gap in (0.2, 0.4, 0.8, 1.6)] == gaps


async def test_a_program_that_cannot_be_started_is_given_up_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(GaveUp, match="No such file"):
        await child(Program("nothing", ("/no/such/program",), backoff_s=0.01), tmp_path).start()


async def test_a_child_that_never_gets_ready_counts_as_crashed(tmp_path: Path) -> None:
    async def never() -> bool:
        return False

    program = Program("slow", dying_with_us(("sleep", "60")), ready=never, ready_within_s=0.1, backoff_s=0.01)
    with pytest.raises(GaveUp, match="was not ready within"):
        await child(program, tmp_path).start()


async def test_a_stubborn_child_and_its_children_are_killed(tmp_path: Path) -> None:
    program = Program("stubborn", shell("trap '' TERM; sleep 60 & echo $!; wait; sleep 60"), stop_within_s=0.3)
    stubborn = child(program, tmp_path)
    await stubborn.start()

    async def told() -> bool:
        return stubborn.log.tail() != ""

    await eventually(told, within=3)
    grandchild, pid = int(stubborn.log.tail()), stubborn.pid
    assert pid and identity(grandchild)
    await asyncio.wait_for(stubborn.stop(), 5)

    async def gone() -> bool:
        return identity(pid) is None and identity(grandchild) is None

    await eventually(gone, within=3)


async def test_stopping_in_the_middle_of_a_backoff_does_not_wait_for_it(tmp_path: Path) -> None:
    dying = child(Program("dying", shell("exit 1"), backoff_s=30), tmp_path)
    starting = asyncio.create_task(dying.start())
    await asyncio.sleep(0.3)
    await asyncio.wait_for(dying.stop(), 2)
    await asyncio.gather(starting, return_exceptions=True)


async def test_output_is_passed_on_line_by_line_to_the_last(tmp_path: Path) -> None:
    heard: list[tuple[str, str]] = []
    program = Program("talker", shell("echo one; echo two; sleep 60"))
    talker = child(program, tmp_path, echo=lambda name, line: heard.append((name, line)))
    await talker.start()

    async def all_heard() -> bool:
        return heard == [("talker", "one"), ("talker", "two")]

    await eventually(all_heard, within=3)
    await talker.stop()


def test_a_grown_log_is_rotated_under_its_writer(tmp_path: Path) -> None:
    log = ChildLog(tmp_path / "x.log", file_bytes=100)
    with log.open() as writer:
        for number in range(6):
            writer.write(f"{number}".encode() * 99 + b"\n")
            log.rotate()
        writer.write(b"end\n")
    assert log.path.read_bytes() == b"end\n"
    kept = sorted(path.name for path in tmp_path.iterdir())
    assert kept == ["x.log", "x.log.1", "x.log.2", "x.log.3"]
    assert (tmp_path / "x.log.1").read_bytes().startswith(b"555")


async def test_what_an_earlier_run_left_is_stopped_and_a_stranger_is_not(tmp_path: Path) -> None:
    ours = await asyncio.create_subprocess_exec("sleep", "60", start_new_session=True)
    stranger = await asyncio.create_subprocess_exec("sleep", "60", start_new_session=True)
    try:
        note_child(tmp_path, "ours", ours.pid, signal.SIGTERM)
        note_child(tmp_path, "reused", stranger.pid, signal.SIGTERM)
        noted = (tmp_path / "reused").read_text().replace(str(identity(stranger.pid)), "another life")
        (tmp_path / "reused").write_text(noted)
        (tmp_path / "torn").write_text("{")
        assert await stop_leftovers(tmp_path) == ["ours"]
        assert identity(stranger.pid) is not None and identity(ours.pid) is None
        assert list(tmp_path.iterdir()) == []
    finally:
        stranger.kill()
        await asyncio.gather(ours.wait(), stranger.wait())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux signals children of the dead")
async def test_a_child_dies_with_a_killed_parent(tmp_path: Path) -> None:
    script = (
        "import subprocess, sys, time; from runtime.processes import dying_with_us;"
        "p = subprocess.Popen(dying_with_us(('sleep', '60'))); print(p.pid, flush=True); time.sleep(60)"
    )
    root = Path(__file__).parents[2]
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE, cwd=root
    )
    assert parent.stdout
    pid = int(await parent.stdout.readline())
    await asyncio.sleep(0.3)  # setpriv has asked by then
    parent.kill()
    await parent.communicate()

    async def gone() -> bool:
        return identity(pid) is None

    await eventually(gone, within=3)
