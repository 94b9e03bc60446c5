"""What failed beside the others gets one more try; what is wrong still fails."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.once_more import plain_name

ROOT = Path(__file__).parents[2]

STARVED = """
from pathlib import Path
import pytest

@pytest.mark.xdist_group("one")
@pytest.mark.parametrize("name", ["a@b"])
def test_it(name):
    mark = Path(__file__).with_name("seen")
    seen = mark.exists()
    mark.touch()
    assert seen

def test_other():
    pass
"""


def run(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_example.py").write_text(text)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.once_more",
            "-n",
            "1",
            "--dist",
            "loadgroup",
            "-p",
            "no:schemathesis",
            "-q",
            "test_example.py",
        ],
        cwd=folder,
        env=clean | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
    )


def test_a_test_that_starved_passes_alone_and_is_told(tmp_path: Path) -> None:
    answer = run(tmp_path, STARVED)
    assert answer.returncode == 0, answer.stdout
    assert "1 failed, 1 passed" in answer.stdout
    assert "Once more, alone: test_example.py::test_it[a@b]" in answer.stdout


def test_a_test_that_is_wrong_fails(tmp_path: Path) -> None:
    answer = run(tmp_path, "def test_it():\n    assert False\n")
    assert answer.returncode == 1
    assert answer.stdout.count("1 failed") == 2


def test_many_failures_are_not_repeated(tmp_path: Path) -> None:
    answer = run(tmp_path, "".join(f"def test_{n}():\n    assert False\n" for n in range(7)))
    assert answer.returncode == 1
    assert "Once more" not in answer.stdout


@pytest.mark.parametrize(
    ("nodeid", "name"),
    [("a.py::t@g", "a.py::t"), ("a.py::t[x@y]", "a.py::t[x@y]"), ("a.py::t[x@y]@g-1", "a.py::t[x@y]")],
)
def test_a_group_is_no_part_of_a_name(nodeid: str, name: str) -> None:
    assert plain_name(nodeid) == name
