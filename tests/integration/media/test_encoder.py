"""Processes: what they say, how they die, and that none is left."""

import asyncio
import errno
import os
import shlex
import signal
import subprocess
import sys
import time
from contextlib import aclosing
from pathlib import Path
from typing import IO

import pytest

from contracts.errors import EncoderCrashed, EncoderRejected, EncoderStalled, ScratchFull
from media import commands, encoder, patience
from media.planning import PlanOptions
from media.tools import Toolbox
from tests.support.clips import Clips
from tests.support.encoding import prepare
from tests.support.eventually import eventually


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def endless(tools: Toolbox, *more: str) -> list[str]:
    """An encode that would never end by itself."""
    source = ["-re", "-f", "lavfi", "-i", "testsrc2=s=160x90:r=25"]
    report = ["-progress", "pipe:1", "-stats_period", "0.1", "-nostats"]
    return [str(tools.pick().ffmpeg), "-v", "error", "-nostdin", *source, *report, *more, "-f", "null", "-"]


async def test_progress_counts_pictures_to_the_end(
    tools: Toolbox, clips: Clips, tmp_path: Path, options: PlanOptions
) -> None:
    work = await prepare(tools, clips.get("land.mp4"), options)
    argv = commands.transcode(work.tool, work.source, tmp_path, work.span(), first_segment=0)
    reports = [report async for report in encoder.run(argv, stall_s=30)]
    assert [report.frame for report in reports] == sorted(report.frame for report in reports)
    assert reports[-1].frame == 90 and reports[-1].ended


async def test_a_broken_command_is_rejected_for_good(tools: Toolbox) -> None:
    with pytest.raises(EncoderRejected) as refused:
        async for _ in encoder.run([str(tools.pick().ffmpeg), "-nonsense", "1"]):
            pass
    assert "nonsense" in refused.value.detail


async def test_a_failure_shows_no_folder_of_this_machine(tools: Toolbox, tmp_path: Path) -> None:
    missing = tmp_path / "nothing.mp4"
    with pytest.raises(EncoderCrashed) as crashed:
        await encoder.output_of([str(tools.ffprobe), "-v", "error", f"file:{missing}"], timeout_s=10)
    assert "nothing.mp4" in crashed.value.detail
    assert str(tmp_path) not in crashed.value.detail + crashed.value.sentence


async def test_a_full_disk_is_told_from_a_crash() -> None:
    with pytest.raises(ScratchFull):
        await encoder.output_of(["/bin/sh", "-c", "echo 'x: No space left on device' >&2; exit 1"], timeout_s=10)


async def test_a_flood_on_stderr_does_not_stop_it(tools: Toolbox) -> None:
    flood = "i=0; while [ $i -lt 20000 ]; do echo 'a line that nobody reads but all must be read' >&2; i=$((i+1)); done"
    with pytest.raises(EncoderCrashed) as crashed:
        await encoder.output_of(["/bin/sh", "-c", f"{flood}; echo the end >&2; exit 3"], timeout_s=30)
    assert crashed.value.detail.endswith("the end")
    assert len(crashed.value.detail) < 2 * encoder.TAIL_BYTES


async def test_too_much_output_is_an_error_not_memory() -> None:
    with pytest.raises(EncoderCrashed):
        await encoder.output_of(["/bin/sh", "-c", "yes"], timeout_s=10, limit_bytes=100_000)


async def test_a_stalled_encoder_is_killed_with_its_whole_group(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = f"echo frame=1; echo progress=continue; sleep 300 & echo $$ $! > {pids}; wait"
    begun = time.monotonic()
    with pytest.raises(EncoderStalled, match="no progress for 1 seconds"):
        async for _ in encoder.run(["/bin/sh", "-c", script], stall_s=1):
            pass
    assert time.monotonic() - begun < 5

    async def gone() -> bool:
        return not any(alive(int(pid)) for pid in pids.read_text().split())

    await eventually(gone, within=5)


async def test_reports_without_a_new_picture_are_a_stall_too() -> None:
    repeating = "while true; do echo frame=7; echo progress=continue; sleep 0.1; done"
    with pytest.raises(EncoderStalled):
        async for _ in encoder.run(["/bin/sh", "-c", repeating], stall_s=1):
            pass


async def test_a_frozen_encoder_is_killed(tools: Toolbox) -> None:
    with pytest.raises(EncoderStalled):
        async with aclosing(encoder.run(endless(tools), stall_s=1)) as reports:
            async for report in reports:
                if report.frame > 3:
                    _signal_ffmpeg_children(signal.SIGSTOP)
    assert not _ffmpeg_children()


def before_the_first_picture(what: str) -> list[str]:
    """A stand-in that does `what` for two seconds and only then shows its first picture."""
    code = "import sys, time\nend = time.monotonic() + 2\nwhile time.monotonic() < end:\n    {}\n{}".format(
        what, "print('frame=1', 'progress=continue', 'frame=2', 'progress=end', sep=chr(10), flush=True)"
    )
    return [sys.executable, "-c", code]


async def test_work_before_the_first_picture_is_progress() -> None:
    reports = [report.frame async for report in encoder.run(before_the_first_picture("pass"), stall_s=0.5)]
    assert reports == [1, 2]


async def test_work_of_a_child_of_the_encoder_counts_as_well() -> None:
    child = shlex.join(before_the_first_picture("pass"))
    reports = [report.frame async for report in encoder.run(["/bin/sh", "-c", f"{child}; :"], stall_s=0.5)]
    assert reports == [1, 2]


async def test_an_idle_encoder_is_killed_though_it_has_shown_nothing() -> None:
    begun = time.monotonic()
    # It wakes ten times a second, as waiting programs do, and that is not work.
    with pytest.raises(EncoderStalled, match=r"no progress for 0.5 seconds"):
        async for _ in encoder.run(before_the_first_picture("time.sleep(0.1)"), stall_s=0.5, grace_s=60):
            pass
    assert time.monotonic() - begun < 1.9


async def test_work_after_the_first_picture_is_no_excuse() -> None:
    busy = "print('frame=1', 'progress=continue', sep=chr(10), flush=True)\nwhile True: pass"
    with pytest.raises(EncoderStalled):
        async for _ in encoder.run([sys.executable, "-c", busy], stall_s=0.5):
            pass


async def test_who_reads_on_in_search_of_more_is_not_stalled() -> None:
    """Sound in the first hour of a day: ffmpeg goes through 40 GB of pictures, and says nothing."""
    lines = ["import time", "print('frame=1', 'progress=continue', sep=chr(10), flush=True)"]
    lines += ["for _ in range(20): open('/dev/zero', 'rb', 0).read(1 << 22), time.sleep(0.05)"]
    lines += ["print('frame=2', 'progress=end', sep=chr(10), flush=True)"]
    argv = [sys.executable, "-c", "\n".join(lines)]
    assert [report.frame async for report in encoder.run(argv, stall_s=0.5)] == [1, 2]


async def test_where_work_cannot_be_seen_the_first_picture_has_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "_PROC", Path("/nonexistent"))
    idle = before_the_first_picture("time.sleep(0.1)")
    assert [report.frame async for report in encoder.run(idle, stall_s=0.5, grace_s=60)] == [1, 2]
    with pytest.raises(EncoderStalled):
        async for _ in encoder.run(idle, stall_s=0.5, grace_s=0.8):
            pass


async def test_a_setpriv_without_the_death_signal_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    busybox = tmp_path / "setpriv"
    busybox.write_text("#!/bin/sh\necho 'BusyBox v1.36: setpriv [OPTIONS] PROG; unknown option' >&2\nexit 1\n")
    busybox.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(encoder, "_prefix", None)
    assert await encoder.output_of(["/bin/echo", "hello"], timeout_s=10) == b"hello\n"


async def test_the_total_time_is_a_limit_of_its_own(tools: Toolbox) -> None:
    with pytest.raises(EncoderStalled, match="longer than the 1 seconds"):
        async for _ in encoder.run(endless(tools), stall_s=30, timeout_s=1):
            pass


async def test_a_slow_reader_is_not_a_stalled_encoder() -> None:
    counting = "for i in 1 2 3 4 5 6; do echo frame=$i; echo progress=continue; sleep 0.1; done"
    seen = []
    async for report in encoder.run(["/bin/sh", "-c", counting], stall_s=0.5):
        seen.append(report.frame)
        if report.frame == 1:
            await asyncio.sleep(1)
    assert seen == [1, 2, 3, 4, 5, 6]


async def test_an_encoder_leads_its_group_and_steps_aside_for_us(tools: Toolbox) -> None:
    async with aclosing(encoder.run(endless(tools))) as reports:
        await anext(reports)
        (child,) = _ffmpeg_children()
        assert os.getpgid(child) == child  # all that it starts dies with it
        assert os.getsid(child) == os.getsid(0), "Linux divides the processor between sessions, whoever is nicer"
        assert os.getpriority(os.PRIO_PROCESS, child) == min(19, os.getpriority(os.PRIO_PROCESS, 0) + 5)


async def test_where_nobody_may_be_nicer_it_encodes_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(which: int, who: int, priority: int) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "setpriority", refused)
    assert await encoder.output_of(["/bin/echo", "ok"], timeout_s=5) == b"ok\n"


async def test_cancelling_kills_the_encoder_at_once(tools: Toolbox) -> None:
    started = asyncio.Event()

    async def encode() -> None:
        async with aclosing(encoder.run(endless(tools))) as reports:
            async for _ in reports:
                started.set()

    task = asyncio.create_task(encode())
    await asyncio.wait_for(started.wait(), 10)
    assert _ffmpeg_children()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not _ffmpeg_children()


_PARENT = """
import asyncio, sys
from media import encoder
async def main():
    async for report in encoder.run(sys.argv[1:]):
        print("running", flush=True)
asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's death signal is Linux's")
async def test_no_ffmpeg_survives_a_parent_that_was_killed(tools: Toolbox) -> None:
    marker = f"vlog-{os.getpid()}-{time.monotonic_ns()}"
    path = os.pathsep.join(entry for entry in sys.path if entry)
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT, *endless(tools, "-metadata", f"title={marker}")],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
    )
    try:
        assert parent.stdout is not None
        assert "running" in (await asyncio.to_thread(_line_with, parent.stdout, b"running"))
        assert len(_with_words(marker)) == 2  # the parent's own command line and ffmpeg's
    finally:
        parent.kill()
        parent.wait()

    async def gone() -> bool:
        return not _with_words(marker)

    await eventually(gone, within=5)


def _line_with(stream: IO[bytes], word: bytes) -> str:
    for line in stream:
        if word in line:
            return line.decode()
    return ""


def _with_words(words: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and words.encode() in (entry / "cmdline").read_bytes() and alive(int(entry.name)):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def _ffmpeg_children() -> list[int]:
    """Encoders whose parent is this very process; others run tests beside us."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if not entry.name.isdigit():
                continue
            name, rest = (entry / "stat").read_text().rsplit(")", 1)
            state, parent = rest.split()[:2]
            if "ffmpeg" in name and int(parent) == os.getpid() and state != "Z":
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def _signal_ffmpeg_children(number: signal.Signals) -> None:
    for pid in _ffmpeg_children():
        os.kill(pid, number)
