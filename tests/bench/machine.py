"""On what it was measured."""

import contextlib
import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from media.tools import Ffmpeg
from tests.e2e.service import ROOT


def describe(tool: Ffmpeg) -> str:
    """Describe this machine in a table."""
    rows = [
        ("cores", str(len(os.sched_getaffinity(0)))),
        ("CPU", _line("/proc/cpuinfo", "model name")),
        ("memory", f"{int(_line('/proc/meminfo', 'MemTotal').split()[0]) / 1024**2:.1f} GiB"),
        ("kernel", f"{platform.system()} {platform.release()}"),
        ("Python", platform.python_version()),
        ("ffmpeg", f"{tool.version} from {tool.origin} (build `{tool.build}`)"),
        ("date", f"{datetime.now(UTC):%Y-%m-%d}"),
    ]
    return "## The machine of the last run\n\n| | |\n| --- | --- |\n" + "\n".join(f"| {a} | {b} |" for a, b in rows)


def moment() -> str:
    """Say when, on which code and beside how much other work a case was run."""
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {code()}, load before it {os.getloadavg()[0]:.2f}"


def code() -> str:
    """Name the code that is measured; the page that the bench itself writes is no part of it."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        commit = _git("rev-parse", "--short", "HEAD")
        return (
            f"commit {commit}{' with changes' if _git('status', '--porcelain', '-uno', ':!docs/benchmarks.md') else ''}"
        )
    return "unknown commit"


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, timeout=10, check=True)
    return done.stdout.strip()


def _line(path: str, name: str) -> str:
    for line in Path(path).read_text().splitlines():
        if line.startswith(name):
            return line.partition(":")[2].strip()
    return "unknown"
