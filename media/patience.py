"""How long an encoder may be silent before it counts as stuck.

Once it has shown a picture, only pictures and time that advance are progress. Before that it may have honest work
that it does not speak of: a source that cannot seek is decoded from its start, and every picture up to the wish is
thrown away. There the processor time that it uses is its sign of life.
"""

import asyncio
import os
import time
from pathlib import Path

# Waiting costs a little too: ffmpeg's main thread wakes four times a second to look at the clock. Work costs more.
_WORKING = 0.02
_LOOKS = 4  # per stall time: what is frozen is found at most a quarter late
_PROC = Path("/proc")


class Patience:
    """The clock of one encoder. `grace_s` stands in for `stall_s` where processor time cannot be read."""

    def __init__(self, group: int, stall_s: float | None, grace_s: float) -> None:
        self._group, self._stall_s, self._grace_s = group, stall_s, grace_s
        self._limit_s = stall_s or 0.0
        self._silent_s = 0.0
        self._opening = True
        self._mark = (time.monotonic(), 0.0)

    @property
    def wait_s(self) -> float | None:
        """How long to wait for a word before asking `is_over`."""
        if self._stall_s is None:
            return None
        left_s = max(0.0, self._limit_s - self._silent_s)
        return min(left_s, self._stall_s / _LOOKS) if self._opening else left_s

    def waited(self, seconds: float) -> None:
        # Only time spent waiting for ffmpeg counts as silence, not the time our caller takes over a report.
        self._silent_s += seconds

    def advanced(self) -> None:
        self._opening = False
        self._limit_s = self._stall_s or 0.0
        self._silent_s = 0.0

    async def is_over(self) -> bool:
        """Say whether it has been silent, and idle, for too long."""
        if self._stall_s is None:
            return False
        if self._opening:
            used_s = await asyncio.to_thread(cpu_seconds, self._group)
            if used_s is None:
                self._limit_s = max(self._stall_s, self._grace_s)
            elif self._has_worked(used_s):
                self._silent_s = 0.0
        # Clocks are read twice per wait; a hair less than the limit is the limit.
        return self._silent_s >= self._limit_s - 0.005

    def _has_worked(self, used_s: float) -> bool:
        now = time.monotonic()
        since, before_s = self._mark
        if used_s - before_s < max(_WORKING * (now - since), 0.005):
            return False
        self._mark = (now, used_s)
        return True


def cpu_seconds(group: int) -> float | None:
    """Add up the processor time of a process group; None where there is no /proc to read it from."""
    ticks, found = 0, False
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
        except (OSError, ValueError, IndexError):
            continue  # it has just ended, or is not ours to see
    return ticks / os.sysconf("SC_CLK_TCK") if found else None
