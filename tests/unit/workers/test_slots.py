"""How many steps a worker takes on machines of every size."""

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from contracts.queues import Pool
from runtime.home import RunFile
from runtime.programs import own_programs
from runtime.settings import Settings
from workers.__main__ import pools_from
from workers.machine import Machine
from workers.slots import all_slots, memory_for_steps, slots
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


@pytest.mark.parametrize("workers, cpu, gpu, gib", [(1, 8, 3, 51.2), (2, 4, 3, 25.6), (8, 1, 2, 6.4), (64, 1, 1, 0.8)])
def test_workers_of_one_machine_share_it(workers: int, cpu: int, gpu: int, gib: float) -> None:
    machine = Machine(16, 64 * GIB, gpu_sessions=3)
    shared = Settings(home=Path("/nowhere"), machine_workers=workers)
    assert slots(Pool.CPU, shared, machine) == cpu
    assert slots(Pool.GPU, shared, machine) == gpu
    assert memory_for_steps(shared, machine) == int(gib * GIB)


def test_each_of_several_workers_below_up_is_told_to_share(tmp_path: Path) -> None:
    run = RunFile(
        pid=1,
        started_at=datetime.now(UTC),
        api_url="http://127.0.0.1:9000",
        temporal_address="",
        database_url="",
        storage_url="",
        sealing_key="",
    )
    for count in (1, 3):
        settings = Settings(home=tmp_path, worker_name=100 * "x")
        told = [child.environment or {} for child in own_programs(settings, run, count)[1:]]
        assert [each["VLOG_MACHINE_WORKERS"] for each in told] == [str(count)] * count
        names = {Settings(home=tmp_path, worker_name=each["VLOG_WORKER_NAME"]).worker_name for each in told}
        assert len(names) == count


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
