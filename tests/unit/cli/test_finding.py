"""Which service a command means, and the line that a person is told to type."""

import asyncio
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli import finding, main
from runtime.home import RunFile, hold, write_run
from runtime.settings import Settings

run = CliRunner()


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a folder whose .vlog says that a service runs."""
    for name in [name for name in os.environ if name.startswith("VLOG_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    monkeypatch.chdir(tmp_path)
    home = tmp_path / ".vlog"
    home.mkdir()
    said = RunFile(
        pid=os.getpid(),
        started_at=datetime.now(UTC),
        api_url="http://127.0.0.1:9",
        temporal_address="",
        database_url="",
        storage_url="",
        sealing_key="",
    )
    write_run(home, said)
    return home


def test_a_service_that_runs_in_this_checkout_is_meant(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with asyncio.run(hold(checkout)):
        assert finding.client_settings().home == checkout
        asked: list[tuple[list[str], dict[str, str]]] = []
        monkeypatch.setattr(os, "execve", lambda _, argv, environment: asked.append((argv, environment)))
        run.invoke(main.app, ["doctor"])
        assert asked[0][0][-2:] == ["--home", str(checkout)]
        for words in (["worker", "--pool", "gpu"], ["mirror", "rebuild"], ["api"], ["migrate"]):
            run.invoke(main.app, words)
            assert asked[-1][1]["VLOG_HOME"] == str(checkout), words
        assert len(asked) == 5
        silent = run.invoke(main.app, ["list"])
        assert "http://127.0.0.1:9" in str(silent.exception)
        monkeypatch.setenv("VLOG_HOME", str(checkout.parent / "other"))
        assert finding.client_settings().home == checkout.parent / "other"


def test_a_run_json_that_nobody_holds_is_not_followed(checkout: Path) -> None:
    assert finding.client_settings().home == checkout.parent / "person/.local/share/vlog"


def test_a_strangers_service_is_not_followed(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with asyncio.run(hold(checkout)):
        assert finding.client_settings().home != checkout


def test_the_line_to_type_names_the_home_and_the_command_as_it_was_called(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(checkout.parent / "bin"))
    monkeypatch.setattr(sys, "argv", [".venv/bin/vlog", "up"])
    spaced = Settings(home=checkout.parent / "my home")
    assert finding.command_for(spaced, "upload FILE") == f"VLOG_HOME='{spaced.home}' .venv/bin/vlog upload FILE"
    assert finding.command_for(Settings(), "upload FILE") == ".venv/bin/vlog upload FILE"

    on_path = checkout.parent / "bin/vlog"
    on_path.parent.mkdir()
    on_path.touch(0o755)
    monkeypatch.setattr(sys, "argv", [str(on_path), "up"])
    assert finding.called() == "vlog"
    monkeypatch.setattr(sys, "argv", ["cli/__main__.py", "up"])
    assert finding.called() == f"{sys.executable} -m cli"
