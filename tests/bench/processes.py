"""What processes cost: read from /proc for the service, from the kernel's own sum for a bare command."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from runtime.processes import command_line, dying_with_us, kill_group
from tests.bench.figures import Cost

TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_MB = 1e6


class CommandFailed(Exception):
    """A measured command ended badly or took too long."""


@dataclass(frozen=True)
class Process:
    pid: int
    parent: int
    own_s: float  # what it spent itself
    buried_s: float  # what its ended and awaited children spent, and theirs
    rss_mb: float


@dataclass
class Tree:
    """Every living process below one root, sorted by what it is to us."""

    workers: list[Process] = field(default_factory=list)
    encoders: list[Process] = field(default_factory=list)  # anything below a worker
    api: list[Process] = field(default_factory=list)
    temporal: list[Process] = field(default_factory=list)
    postgres: list[Process] = field(default_factory=list)
    rest: list[Process] = field(default_factory=list)

    @property
    def ffmpeg_cpu_s(self) -> float:
        # A worker awaits each of its children, so that those which ended are in its own account.
        ended = sum(worker.buried_s for worker in self.workers)
        return ended + sum(process.own_s + process.buried_s for process in self.encoders)

    @property
    def other_cpu_s(self) -> float:
        return sum(self.cpu_s.values()) - self.ffmpeg_cpu_s

    @property
    def cpu_s(self) -> dict[str, float]:
        """Say who has spent how much, ended children included."""
        whole = {"API": self.api, "Temporal": self.temporal, "Postgres": self.postgres, "rest": self.rest}
        return {
            "ffmpeg": self.ffmpeg_cpu_s,
            "workers": sum(worker.own_s for worker in self.workers),
        } | {name: sum(process.own_s + process.buried_s for process in some) for name, some in whole.items()}


def tree(root: int) -> Tree:
    """Look at all living descendants of a process, itself included."""
    alive = {process.pid: process for process in _living()}
    children: dict[int, list[int]] = {}
    for process in alive.values():
        children.setdefault(process.parent, []).append(process.pid)
    found = Tree()
    drawers = {"workers": found.workers, "api": found.api, "temporal": found.temporal, "postgres": found.postgres}
    waiting = [(root, found.rest)]
    while waiting:
        pid, drawer = waiting.pop()
        if pid not in alive:
            continue
        if drawer is found.rest:  # else it is a child of one of those
            drawer = drawers.get(_name(pid), drawer)
        drawer.append(alive[pid])
        below = found.encoders if drawer is found.workers else drawer
        waiting += [(child, below) for child in children.get(pid, ())]
    return found


def _name(pid: int) -> str:
    """Name a module of ours, or else the program."""
    words = command_line(pid)
    with contextlib.suppress(ValueError, IndexError):
        return words[words.index("-m") + 1]
    return Path(words[0]).name if words else ""


def _living() -> Iterator[Process]:
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                # The name, in parentheses, may hold spaces: count the fields after it.
                words = Path(entry.path, "stat").read_text().rpartition(")")[2].split()
                user, system, buried_user, buried_system = (int(word) / TICKS for word in words[11:15])
                rss_mb = int(words[21]) * _PAGE / _MB
                yield Process(int(entry.name), int(words[1]), user + system, buried_user + buried_system, rss_mb)


def machine_ticks() -> tuple[int, int]:
    """Give how long all cores were busy since the machine's start, whoever it was, and how long that is in all."""
    numbers = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    idle = numbers[3] + numbers[4]  # and waiting for a disk
    return sum(numbers) - idle, sum(numbers)


class Sampler:
    """Watch a service's memory from a thread: four looks a second cost less than a hundredth of a core."""

    def __init__(self, root: int, every_s: float = 0.25) -> None:
        self.ffmpeg_mb = self.worker_mb = self.api_mb = 0.0
        self._root = root
        self._every_s = every_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(self._every_s):
            seen = tree(self._root)
            self.ffmpeg_mb = max(self.ffmpeg_mb, sum(process.rss_mb for process in seen.encoders))
            self.worker_mb = max([self.worker_mb, *(process.rss_mb for process in seen.workers)])
            self.api_mb = max([self.api_mb, *(process.rss_mb for process in seen.api)])


def measured(argv: Sequence[str], *, timeout_s: float) -> Cost:
    """Run a command to its end and say what it cost. Raises CommandFailed."""
    with open(os.devnull, "wb") as nowhere:
        began = time.monotonic()
        process = subprocess.Popen(
            dying_with_us(argv), stdin=subprocess.DEVNULL, stdout=nowhere, stderr=nowhere, start_new_session=True
        )
        alarm = threading.Timer(timeout_s, kill_group, [process.pid])
        alarm.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
            wall_s = time.monotonic() - began
        except BaseException:
            kill_group(process.pid)
            process.wait()
            raise
        finally:
            alarm.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        late = f", stopped after {timeout_s:.0f} s" if process.returncode == -signal.SIGKILL else ""
        raise CommandFailed(f"{Path(argv[0]).name} ended with {process.returncode}{late}: {' '.join(argv)}")
    return Cost(wall_s=wall_s, ffmpeg_cpu_s=usage.ru_utime + usage.ru_stime, ffmpeg_mb=usage.ru_maxrss * 1024 / _MB)


@contextlib.contextmanager
def foreign_load(wanted: bool) -> Iterator[None]:
    """Keep one core busy with something that is none of ours."""
    if not wanted:
        yield
        return
    # In a session of its own, as somebody else's would be: beside it nobody's being nice counts.
    argv = dying_with_us(["sh", "-c", "while :; do :; done"])
    busy = subprocess.Popen(argv, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        yield
    finally:
        busy.kill()
        busy.wait()
