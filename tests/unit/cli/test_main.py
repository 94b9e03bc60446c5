"""The command's edges: errors as lines, processes as modules, bars on a terminal."""

import io
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from cli import following, main, processes
from cli.answers import Created, Progress
from cli.demo import local_master, workflow_address
from cli.terminal import CliError, bytes_text, seconds_text
from runtime.joining import Joined
from runtime.settings import load_settings
from tests.unit.cli.fake_api import progress

run = CliRunner()


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    calls: list[list[str]] = []

    def execve(path: str, argv: list[str], environment: dict[str, str]) -> None:
        calls.append(argv)
        raise SystemExit(0)

    monkeypatch.setenv("VLOG_HOME", str(tmp_path))
    monkeypatch.setattr(os, "execve", execve)
    return calls


@pytest.mark.parametrize(
    "words, module",
    [
        (["api"], ["api"]),
        (["migrate"], ["workers.migrate"]),
        (["doctor", "--json"], ["workers.doctor", "--json"]),
        (["worker"], ["workers"]),
        (["worker", "--pool", "cpu, io,cpu"], ["workers", "--pool", "cpu,io"]),
        (["worker", "--pool", "cpu,io", "--pool", "gpu"], ["workers", "--pool", "cpu,io,gpu"]),
    ],
)
def test_long_running_parts_become_their_own_module(
    executed: list[list[str]], words: list[str], module: list[str]
) -> None:
    assert run.invoke(main.app, words).exit_code == 0
    assert executed == [[sys.executable, "-P", "-m", *module]]


def test_a_remote_workers_key_is_not_among_the_arguments_that_everybody_sees(
    executed: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("VLOG_WORKER_API_URL", "VLOG_WORKER_API_KEY"):
        monkeypatch.setenv(name, "")  # to be put back
    words = ["worker", "--api", "https://vlog.example.org/", "--key", "very-secret"]
    assert run.invoke(main.app, words).exit_code == 0
    assert executed == [[sys.executable, "-P", "-m", "workers"]]
    assert load_settings().worker_api_url == "https://vlog.example.org"
    assert os.environ["VLOG_WORKER_API_KEY"] == "very-secret"
    monkeypatch.setenv("VLOG_WORKER_API_KEY", "")
    refused = run.invoke(main.app, ["worker", "--api", "https://vlog.example.org"])
    assert isinstance(refused.exception, CliError) and "key" in refused.exception.sentence
    # A worker that joined the service of this machine instead would be the wrong one.
    monkeypatch.setenv("VLOG_WORKER_API_URL", "")
    refused = run.invoke(main.app, ["worker", "--key", "very-secret"])
    assert isinstance(refused.exception, CliError) and "--api" in refused.exception.mend and len(executed) == 1


def test_an_unknown_pool_names_the_known_ones() -> None:
    with pytest.raises(CliError) as caught:
        processes.parse_pools("cpu,gpuu")
    assert "gpuu" in caught.value.sentence and "orchestrate" in caught.value.mend


def test_the_version_is_printed() -> None:
    assert run.invoke(main.app, ["--version"]).stdout.startswith("vlog ")


def run_main(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["vlog", *words])
    with pytest.raises(SystemExit) as left:
        main.main()
    return int(left.value.code or 0)


def test_a_mistyped_setting_is_one_line_with_what_was_meant(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VLOG_PRESETT", "fast")
    assert run_main(monkeypatch, "list") == 2
    said = capsys.readouterr().err
    assert "VLOG_PRESET" in said and "Traceback" not in said and len(said.splitlines()) == 1


def test_an_unforeseen_error_is_a_line_unless_debugging(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def break_down(*_: Any) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setenv("VLOG_HOME", str(tmp_path))
    monkeypatch.setattr(processes, "become", break_down)
    assert run_main(monkeypatch, "api") == 1
    said = capsys.readouterr().err
    assert "ZeroDivisionError: by zero" in said and "Traceback" not in said

    monkeypatch.setenv("VLOG_LOG_LEVEL", "debug")
    monkeypatch.setattr(sys, "argv", ["vlog", "api"])
    with pytest.raises(ZeroDivisionError):
        main.main()


def test_a_terminal_gets_a_bar_per_quality_that_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(following, "out", Console(file=screen, force_terminal=True, width=100))
    with following.Bars() as bars:
        for done in (1, 4):
            raw = progress(percent=done * 25.0, done=done)
            bars.show(raw, Progress.model_validate(raw))
    shown = screen.getvalue()
    assert "720p" in shown and "transcode" in shown and "done" in shown
    assert "1080p" not in shown


def test_a_later_try_and_the_time_left_are_told() -> None:
    raw = progress(percent=41, done=2, attempt=2, eta_seconds=75)
    assert following.line(Progress.model_validate(raw)) == "transcode, try 2 of 3  41 %  720p 2/4  1:15 left"


def test_the_demo_finds_the_stream_only_on_this_machine(tmp_path: Path) -> None:
    spaced = tmp_path / "my videos"
    assert local_master(spaced.as_uri(), "clip") == spaced / "videos/clip/master.m3u8"
    assert local_master("s3://bucket/prefix", "clip") is None


def test_the_workflow_of_a_video_has_an_address() -> None:
    joined = Joined("", "", "default", "", temporal_ui_url="http://127.0.0.1:8233")
    created = Created(video_id=12, slug="s", job_id=34, status="pending")
    assert workflow_address(joined, created) == "http://127.0.0.1:8233/namespaces/default/workflows/video-12-job-34"


def test_sizes_and_lengths_read_well() -> None:
    assert [bytes_text(n) for n in (12, 4200, 3_100_000)] == ["12 B", "4.2 kB", "3.1 MB"]
    assert [seconds_text(n) for n in (20, 3723, None)] == ["0:20", "1:02:03", "–"]
