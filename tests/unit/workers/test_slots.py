"""How many steps a worker takes on machines of every size."""

import subprocess
from pathlib import Path

import pytest

from contracts.queues import Pool
from runtime.settings import Settings
from workers.__main__ import pools_from
from workers.machine import Machine
from workers.slots import all_slots, slots
from workers.version import ROOT, code_version

GIB = 1 << 30
SETTINGS = Settings(home=Path("/nowhere"))


@pytest.mark.parametrize(
    "cores, gib, cpu, gpu",
    [
        (2, 24, 2, 2),
        (1.5, 4, 2, 1),  # sound and thumbnail beside the picture, also on half a machine
        (16, 64, 8, 3),
        (64, 16, 12, 3),  # memory is what it lacks
        (0.5, 0.5, 2, 1),
    ],
)
def test_slots_follow_cores_and_memory(cores: float, gib: float, cpu: int, gpu: int) -> None:
    machine = Machine(cores, int(gib * GIB), gpu_sessions=3)
    assert slots(Pool.CPU, SETTINGS, machine) == cpu
    assert slots(Pool.GPU, SETTINGS, machine) == gpu


def test_settings_win_for_every_pool() -> None:
    named = Settings(home=Path("/nowhere"), **{f"{pool.value}_slots": 7 for pool in Pool})  # type: ignore[arg-type]
    assert set(all_slots(Pool, named, Machine(2, GIB)).values()) == {7}


def test_pools_are_named_with_commas_or_again_and_again() -> None:
    assert pools_from(["cpu, io", "cpu", "gpu"]) == (Pool.CPU, Pool.IO, Pool.GPU)


def test_a_checkouts_version_names_its_commit_and_a_package_has_its_own() -> None:
    assert code_version(Path("/")) == code_version().partition("+")[0]
    if (ROOT / ".git").exists():
        head = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
        commit = code_version().partition("+")[2].removesuffix(".dirty")
        assert len(commit) >= 12 and head.stdout.startswith(commit)
