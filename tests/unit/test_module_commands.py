"""`migrate`, `worker` and `doctor` as processes, when nothing runs: a sentence, never a traceback."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def ask(home: Path, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("VLOG_")}
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=ROOT,
        env=clean | {"VLOG_HOME": str(home)} | settings,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize("module", ["workers", "workers.migrate"])
def test_with_nothing_running_the_way_out_is_one_line(module: str, tmp_path: Path) -> None:
    done = ask(tmp_path, module)
    said = (done.stdout + done.stderr).strip()
    assert done.returncode == 1
    assert "vlog up" in said and "Traceback" not in said and len(said.splitlines()) == 1
    wrong = ask(tmp_path, module, VLOG_PRESET="fastest")
    assert wrong.returncode == 1 and wrong.stderr.startswith("VLOG_PRESET: ") and "Traceback" not in wrong.stderr


def test_a_database_that_is_away_is_one_line(tmp_path: Path) -> None:
    away = {"VLOG_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none", "VLOG_TEMPORAL_ADDRESS": "127.0.0.1:1"}
    done = ask(tmp_path, "workers.migrate", **away)
    assert done.returncode == 1
    assert done.stderr.startswith("The database does not let us in") and len(done.stderr.splitlines()) == 1


def test_a_worker_for_a_gpu_that_does_not_encode_says_what_it_tried(tmp_path: Path) -> None:
    away = {"VLOG_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none", "VLOG_TEMPORAL_ADDRESS": "127.0.0.1:1"}
    done = ask(tmp_path, "workers", "--pool", "gpu", VLOG_GPU_ENCODER="h264_nvenc", **away)
    assert done.returncode == 1 and "Traceback" not in done.stdout + done.stderr
    assert "No GPU of this machine encodes" in done.stdout + done.stderr and "h264_nvenc" in done.stdout + done.stderr


def test_the_doctor_says_once_that_nothing_runs_and_bears_a_closed_pipe(tmp_path: Path) -> None:
    plain = ask(tmp_path, "workers.doctor")
    assert plain.returncode == 1 and plain.stdout.count("not running") == 1
    assert "BAD  postgres" not in plain.stdout and "ok   ffmpeg" in plain.stdout
    found = json.loads(ask(tmp_path, "workers.doctor", "--json", "--home", str(tmp_path / "x")).stdout)
    assert found.keys() == {"ffmpeg", "gpu", "postgres", "temporal", "storage", "disk", "worker", "settings"}
    assert found["worker"]["slots"]["cpu"] >= 2 and found["worker"]["cores"] > 0
    assert not found["temporal"]["ok"] and str(tmp_path / "x") in found["temporal"]["problem"]

    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as nobody_reads:
        done = subprocess.run(
            [sys.executable, "-u", "-m", "workers.doctor"],
            cwd=ROOT,
            env=os.environ | {"VLOG_HOME": str(tmp_path)},
            stdout=nobody_reads,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    assert done.returncode == 1 and done.stderr == ""


def test_a_rebuild_with_nothing_running_is_one_line(tmp_path: Path) -> None:
    done = ask(tmp_path, "workers.mirror", "rebuild", "3")
    assert done.returncode == 1
    assert "vlog up" in done.stderr and len(done.stderr.strip().splitlines()) == 1
