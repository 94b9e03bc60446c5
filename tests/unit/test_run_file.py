"""run.json and the lock: who runs here, and what others are told."""

import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from runtime.home import AlreadyRunning, RunFile, hold, is_held, read_run, remove_run, write_run
from runtime.joining import NotRunning, resolve
from runtime.settings import Settings

DEAD_PID = 2**22 + 1  # above Linux's largest pid


def a_run(**changed: object) -> RunFile:
    facts: dict[str, object] = {
        "pid": os.getpid(),
        "started_at": datetime.now(UTC),
        "api_url": "http://127.0.0.1:9000",
        "temporal_address": "127.0.0.1:7233",
        "temporal_namespace": "films",
        "temporal_ui_url": "http://127.0.0.1:8233",
        "database_url": "postgresql+asyncpg://vlog:pw@127.0.0.1:5432/vlog",
        "storage_url": "file:///storage",
        "sealing_key": "key",
    }
    return RunFile.model_validate(facts | changed)


def test_only_the_owner_reads_it_and_it_reads_back(tmp_path: Path) -> None:
    write_run(tmp_path, a_run())
    assert stat.S_IMODE((tmp_path / "run.json").stat().st_mode) == 0o600
    assert read_run(tmp_path) == a_run(started_at=(read_run(tmp_path) or a_run()).started_at)
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]
    remove_run(tmp_path)
    remove_run(tmp_path)
    assert read_run(tmp_path) is None


def test_a_file_left_by_a_killed_service_counts_for_nothing(tmp_path: Path) -> None:
    write_run(tmp_path, a_run(pid=DEAD_PID))
    assert read_run(tmp_path) is None


async def test_a_held_home_is_running_whatever_its_pid_says(tmp_path: Path) -> None:
    write_run(tmp_path, a_run(pid=DEAD_PID))
    with await hold(tmp_path):
        assert read_run(tmp_path) is not None
    assert read_run(tmp_path) is None


@pytest.mark.parametrize("content", [b"", b"{", b'{"pid": 1}'])
def test_a_damaged_file_counts_for_nothing(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_bytes(content)
    assert read_run(tmp_path) is None


async def test_a_second_holder_is_told_who_the_first_is(tmp_path: Path) -> None:
    write_run(tmp_path, a_run())
    with await hold(tmp_path):
        with pytest.raises(AlreadyRunning, match=rf"process {os.getpid()}, http://127.0.0.1:9000") as refused:
            await hold(tmp_path)
        assert str(tmp_path) in str(refused.value) and "VLOG_HOME" in str(refused.value)
        assert is_held(tmp_path)
    assert not is_held(tmp_path)
    with await hold(tmp_path):
        pass


def test_with_nothing_named_and_nothing_running_the_error_says_both_ways_out(tmp_path: Path) -> None:
    with pytest.raises(NotRunning, match=r"vlog up.*VLOG_DATABASE_URL and VLOG_TEMPORAL_ADDRESS"):
        resolve(Settings(home=tmp_path))


def test_what_runs_is_joined(tmp_path: Path) -> None:
    write_run(tmp_path, a_run())
    joined = resolve(Settings(home=tmp_path))
    assert joined.database_url.startswith("postgresql+asyncpg://vlog:pw@")
    assert joined.temporal_namespace == "films" and joined.embedded_temporal
    assert joined.api_url == "http://127.0.0.1:9000" and joined.sealing_key == "key"


def test_what_is_named_wins_over_what_runs(tmp_path: Path) -> None:
    write_run(tmp_path, a_run())
    named = Settings(home=tmp_path, database_url="postgres://db/x", temporal_address="t:1", storage_url="file:///b/p")
    joined = resolve(named)
    assert joined.database_url == "postgresql+asyncpg://db/x"
    assert (joined.temporal_address, joined.temporal_namespace) == ("t:1", "")
    assert joined.storage_url == "file:///b/p"
    assert joined.temporal_ui_url is None and not joined.embedded_temporal


def test_with_everything_named_nothing_need_run(tmp_path: Path) -> None:
    joined = resolve(Settings(home=tmp_path, database_url="postgres://db/x", temporal_address="t:1"))
    assert joined.storage_url == (tmp_path / "storage").as_uri() and joined.api_url is None
