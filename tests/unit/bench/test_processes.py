import os
import subprocess
import sys

import pytest

from tests.bench.processes import CommandFailed, foreign_load, measured, tree

BUSY = "import time\nwhile time.process_time() < 0.3: pass"


def test_a_commands_cost_is_what_the_kernel_counted() -> None:
    cost = measured([sys.executable, "-c", BUSY], timeout_s=30)
    assert 0.25 < cost.ffmpeg_cpu_s < 3
    assert cost.wall_s > 0.25 and cost.ffmpeg_mb > 2


@pytest.mark.parametrize(("argv", "says"), [(["false"], "ended with 1"), (["sleep", "30"], "stopped after 0 s")])
def test_a_command_that_fails_or_hangs_is_no_measurement(argv: list[str], says: str) -> None:
    with pytest.raises(CommandFailed, match=says):
        measured(argv, timeout_s=0.3)


def test_ended_children_stay_in_the_account() -> None:
    before = tree(os.getpid())
    subprocess.run([sys.executable, "-c", BUSY], check=True, timeout=30)
    after = tree(os.getpid())
    assert after.other_cpu_s - before.other_cpu_s > 0.25


def test_foreign_load_ends_with_its_block() -> None:
    with foreign_load(True):
        assert any(process.parent == os.getpid() for process in tree(os.getpid()).rest)
    assert not any(process.parent == os.getpid() for process in tree(os.getpid()).rest)
