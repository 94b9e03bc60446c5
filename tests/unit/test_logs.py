"""Logs: one line is one JSON object, whoever wrote it, in a file of its own."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

SCRIPT = """
import logging, sys, structlog
from runtime.exiting import exit_now
from runtime.logs import configure_logs
from runtime.settings import Settings
log = structlog.stdlib.get_logger("ours")  # before logs are configured, as at the top of every module
configure_logs(Settings(home=sys.argv[1], log_files=sys.argv[2] == "files"), "worker")
with structlog.contextvars.bound_contextvars(job_id=7):
    log.info("step done", quality="720p")
logging.getLogger("theirs").warning("disk %s", "full", extra={"free_bytes": 3})
logging.getLogger("theirs").debug("never seen")
try:
    1 / 0
except ZeroDivisionError:
    log.exception("broken")
if sys.argv[2:] == ["files", "wait"]:
    sys.stdin.read()
exit_now(5)
"""


def run(home: Path, *how: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(home), *how],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_every_line_is_json_and_the_file_says_what_stdout_says(tmp_path: Path) -> None:
    process = run(tmp_path, "files")
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 5
    assert said == (tmp_path / "logs" / "worker.log").read_text()
    ours, theirs, broken = (json.loads(line) for line in said.splitlines())
    assert (ours["event"], ours["quality"], ours["job_id"], ours["level"]) == ("step done", "720p", 7, "info")
    assert (theirs["event"], theirs["free_bytes"], theirs["logger"]) == ("disk full", 3, "theirs")
    assert "ZeroDivisionError" in broken["exception"]
    assert all(line["process"] == "worker" and line["timestamp"].endswith("Z") for line in (ours, theirs, broken))


def test_two_processes_of_one_name_do_not_share_a_file(tmp_path: Path) -> None:
    first = run(tmp_path, "files", "wait")
    assert first.stdout
    first.stdout.readline()
    second = run(tmp_path, "files")
    second.communicate(timeout=60)
    first.communicate(timeout=60)
    names = sorted(path.name for path in (tmp_path / "logs").glob("*.log"))
    assert names == ["worker-2.log", "worker.log"]


def test_somebody_else_may_keep_the_output(tmp_path: Path) -> None:
    run(tmp_path, "none").communicate(timeout=60)
    assert not (tmp_path / "logs").exists()
