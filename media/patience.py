"""How long an encoder may be silent before it counts as stuck.

Once it has shown a picture, only pictures and time that advance are progress, and bytes that it reads: where a file has
sound for an hour of its day, ffmpeg goes through all the rest in search of more. A file has an end. Before the first
picture it may have honest work that it does not speak of: a source that cannot seek is decoded from its start, and
every picture up to the wish is thrown away. There the processor time that it uses is its sign of life as well.
"""

import asyncio
import os
import time
from dataclasses import dataclass
from pathlib import Path

# Waiting costs a little too: ffmpeg's main thread wakes four times a second to look at the clock. Work costs more.
_WORKING = 0.02
_READING_BYTES = 1 << 20  # between two looks; what waits reads nothing
_LOOKS = 4  # per stall time: what is frozen is found at most a quarter late
_PROC = Path("/proc")


@dataclass(frozen=True)
class Signs:
    """What a process group has used so far."""

    cpu_s: float
    read_bytes: int


class Patience:
    """The clock of one encoder. `grace_s` stands in for `stall_s` where processor time cannot be read."""

    def __init__(self, group: int, stall_s: float | None, grace_s: float) -> None:
        self._group, self._stall_s, self._grace_s = group, stall_s, grace_s
        self._limit_s = stall_s or 0.0
        self._silent_s = 0.0
        self._look_s = self._limit_s / _LOOKS  # of silence, until the next look
        self._opening = True
        self._mark = (time.monotonic(), Signs(0.0, 0))

    @property
    def wait_s(self) -> float | None:
        """How long to wait for a word before asking `is_over`."""
        return None if self._stall_s is None else max(0.0, self._look_s - self._silent_s)

    def waited(self, seconds: float) -> None:
        # Only time spent waiting for ffmpeg counts as silence, not the time our caller takes over a report.
        self._silent_s += seconds

    def advanced(self) -> None:
        self._opening = False
        self._limit_s = self._stall_s or 0.0
        self._begin()

    def _begin(self) -> None:
        self._silent_s = 0.0
        self._look_s = self._limit_s / _LOOKS

    async def is_over(self) -> bool:
        """Say whether it has been silent, and idle, for too long."""
        if self._stall_s is None:
            return False
        signs = await asyncio.to_thread(signs_of_life, self._group)
        if signs is not None and self._has_worked(signs):
            self._begin()
        elif signs is None and self._opening:
            self._limit_s = max(self._stall_s, self._grace_s)
        self._look_s = min(self._limit_s, self._silent_s + self._limit_s / _LOOKS)
        # Clocks are read twice per wait; a hair less than the limit is the limit.
        return self._silent_s >= self._limit_s - 0.005

    def _has_worked(self, signs: Signs) -> bool:
        now = time.monotonic()
        since, before = self._mark
        calculated = self._opening and signs.cpu_s - before.cpu_s >= max(_WORKING * (now - since), 0.005)
        if not calculated and signs.read_bytes - before.read_bytes < _READING_BYTES:
            return False
        self._mark = (now, signs)
        return True


def signs_of_life(group: int) -> Signs | None:
    """Add up what a process group has used; None where there is no /proc to read it from."""
    ticks, read_bytes, found = 0, 0, False
    try:
        names = [name for name in os.listdir(_PROC) if name.isdigit()]
    except OSError:
        return None
    for name in names:
        try:
            # The name of the program may hold anything, brackets too; what follows the last one is numbers.
            fields = (_PROC / name / "stat").read_text(errors="replace").rsplit(")", 1)[1].split()
            if int(fields[2]) == group:
                found = True
                ticks += sum(int(value) for value in fields[11:15])  # its own and its dead children's
                read_bytes += _read_bytes(name)
        except (OSError, ValueError, IndexError):
            continue  # it has just ended, or is not ours to see
    return Signs(ticks / os.sysconf("SC_CLK_TCK"), read_bytes) if found else None


def _read_bytes(name: str) -> int:
    """Tell what a process has asked for in bytes, wherever they came from; 0 where that is not told."""
    try:
        words = (_PROC / name / "io").read_text().split()
        return int(words[words.index("rchar:") + 1])
    except (OSError, ValueError, IndexError):
        return 0
