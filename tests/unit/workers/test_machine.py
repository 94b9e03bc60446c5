"""What a worker may use, read from files as the kernel writes them."""

import os
from pathlib import Path

import pytest

from workers.machine import this_machine

GIB = 1 << 30
HOST = this_machine(Path("/nowhere"))


def files(root: Path, found: dict[str, str]) -> Path:
    for name, text in found.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_without_control_groups_it_is_the_machine_itself() -> None:
    assert HOST.cores == len(os.sched_getaffinity(0))
    assert HOST.memory_bytes == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def test_a_containers_own_limits_count(tmp_path: Path) -> None:
    root = files(
        tmp_path,
        {
            "proc/self/cgroup": "0::/\n",
            "sys/fs/cgroup/cpu.max": "50000 100000\n",
            "sys/fs/cgroup/memory.max": f"{GIB // 4}\n",
        },
    )
    assert this_machine(root).cores == 0.5
    assert this_machine(root).memory_bytes == GIB // 4


def test_of_several_groups_above_each_other_the_tightest_counts(tmp_path: Path) -> None:
    root = files(
        tmp_path,
        {
            "proc/self/cgroup": "0::/vlog.slice/worker.service\n",
            "sys/fs/cgroup/vlog.slice/cpu.max": "75000 100000\n",
            "sys/fs/cgroup/vlog.slice/worker.service/cpu.max": "max 100000\n",
            "sys/fs/cgroup/vlog.slice/memory.max": "max\n",
            "sys/fs/cgroup/vlog.slice/worker.service/memory.max": f"{GIB // 8}\n",
        },
    )
    assert this_machine(root).cores == 0.75
    assert this_machine(root).memory_bytes == GIB // 8


@pytest.mark.parametrize("path", ["/", "/docker/0123abc"])
def test_version_one_has_a_tree_per_controller(tmp_path: Path, path: str) -> None:
    # In a container the path is the host's, and the mount shows its own folder as the root.
    root = files(
        tmp_path,
        {
            "proc/self/cgroup": f"5:memory:{path}\n4:cpu,cpuacct:{path}\n1:name=systemd:{path}\n0::/\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "25000\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{GIB // 2}\n",
        },
    )
    assert this_machine(root).cores == 0.25
    assert this_machine(root).memory_bytes == GIB // 2


def test_no_limit_is_no_limit(tmp_path: Path) -> None:
    root = files(
        tmp_path,
        {
            "proc/self/cgroup": "5:memory:/\n4:cpu:/\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        },
    )
    assert this_machine(root) == HOST
