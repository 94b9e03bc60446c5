"""What this process may use of its machine: in a container what its control groups grant, not what the host has."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

UNLIMITED = 1 << 60  # version 1 says "no limit" with a number near 2 to the 63rd


@dataclass(frozen=True)
class Machine:
    cores: float  # a quota may grant one and a half
    memory_bytes: int
    gpu_sessions: int = 0  # encodes that its GPU takes at once; 0 when there is none, or nobody has looked


def this_machine(root: Path = Path("/")) -> Machine:
    """Count cores and memory: the machine's own, unless something grants less."""
    cores = [float(_cores_to_run_on())]
    memory = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for group in _groups(root, "cpu"):
        cores += _quota(group)
    for group in _groups(root, "memory"):
        memory += _memory_limit(group)
    return Machine(cores=min(cores), memory_bytes=min(memory))


def _cores_to_run_on() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS has none
        return os.cpu_count() or 1


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """Name the folders of our control group and of all above it: each may limit us.

    Both versions: the second has one tree, the first a tree per controller. Within a container the path may be the
    host's while the mount shows only our own part, so that folders which are not there are passed over.
    """
    mount = root / "sys/fs/cgroup"
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if not names:
            tree = mount
        elif controller in names.split(","):
            tree = next((mount / name for name in (names, controller) if (mount / name).is_dir()), mount / names)
        else:
            continue
        own = tree / path.strip("/")
        for folder in (own, *own.parents):
            if folder.is_dir():
                yield folder
            if folder == tree:
                break


def _quota(group: Path) -> list[float]:
    words = _words(group / "cpu.max") or _words(group / "cpu.cfs_quota_us") + _words(group / "cpu.cfs_period_us")
    if len(words) != 2 or not all(word.isdigit() for word in words):  # `max`, or -1: no quota
        return []
    quota, period = (int(word) for word in words)
    return [quota / period] if quota and period else []


def _memory_limit(group: Path) -> list[int]:
    words = _words(group / "memory.max") or _words(group / "memory.limit_in_bytes")
    return [int(word) for word in words if word.isdigit() and 0 < int(word) < UNLIMITED]


def _words(file: Path) -> list[str]:
    try:
        return file.read_text().split()
    except OSError:
        return []
