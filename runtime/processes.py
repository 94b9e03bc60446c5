"""Processes of this machine: who one is, whether it lives, and how it dies with us. Starts nothing of its own."""

import asyncio
import contextlib
import functools
import os
import platform
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

LINUX = platform.system() == "Linux"


def identity(pid: int) -> str | None:
    """Name a process for as long as it lives, so that a reused pid is never taken for it; None when it is dead."""
    if LINUX:
        try:
            # The name, in parentheses, may itself hold spaces and parentheses. State is field 3, start time field 22.
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        except OSError:
            return None
        return None if fields[0] in "ZX" else f"{boot}:{fields[19]}"  # a zombie holds nothing any more
    return _ps(pid, "lstart=")


def command_line(pid: int) -> tuple[str, ...]:
    """Give a living process's arguments; empty for a dead one, a zombie, or one we may not see."""
    if LINUX:
        try:
            return tuple(Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0"))
        except OSError:
            return ()
    return tuple((_ps(pid, "command=") or "").split(" "))


async def stop_process(pid: int, *, gently: signal.Signals, within_s: float) -> None:
    """Stop a process that an earlier run of ours started: ask, wait, then kill it and its group."""
    who = identity(pid)
    if who is None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, gently)
    if await _gone(pid, who, within_s):
        return
    kill_group(pid)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    await _gone(pid, who, 5.0)


async def _gone(pid: int, who: str, within_s: float) -> bool:
    # It is not our child, so nobody tells us: look.
    for _ in range(max(1, round(within_s / 0.05))):
        if identity(pid) != who:
            return True
        await asyncio.sleep(0.05)
    return False


def kill_group(pid: int) -> None:
    """Kill a process that leads its own group, and all that it left in it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def dying_with_us(argv: Sequence[str], order: signal.Signals = signal.SIGKILL) -> tuple[str, ...]:
    """Wrap a command so that the kernel signals it when we die, even by kill -9.

    Whatever changes credentials (unshare, a change of user) must come before this: it clears the wish.
    Where there is no such thing, what leaks is stopped by the next start (see leftovers).
    """
    setpriv = _setpriv()
    return (setpriv, "--pdeathsig", order.name.removeprefix("SIG"), "--", *argv) if setpriv else tuple(argv)


@functools.cache
def _setpriv() -> str | None:
    found = shutil.which("setpriv") if LINUX else None
    # BusyBox has a setpriv that knows no --pdeathsig.
    return found if found and works(found, "--pdeathsig", "KILL", "--", "true") else None


def works(*argv: str) -> bool:
    """Tell whether a command that ends at once succeeds here."""
    try:
        return subprocess.run(argv, capture_output=True, timeout=10, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _ps(pid: int, column: str) -> str | None:
    try:
        shown = subprocess.run(
            ("ps", "-o", column, "-p", str(pid)), capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return shown.stdout.strip() or None
