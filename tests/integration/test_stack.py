"""The stack of servers, alone: one per home, killed without a trace, as root and as anybody else."""

import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from runtime.home import read_run
from runtime.one_shot import CommandFailed
from runtime.processes import dying_with_us, identity, works
from runtime.settings import Settings
from runtime.stack import AlreadyRunning, GaveUp, Stack
from runtime.supervisor import Program
from tests.support.eventually import eventually
from tests.support.running_stack import StackProcess


def servers_alone(home: Path, **settings: object) -> Stack:
    return Stack(Settings(home=home, **settings), programs=lambda *_: (), migration=None)  # type: ignore[arg-type]


async def query(url: str, sql: str) -> object:
    connection = await asyncpg.connect(url.replace("+asyncpg", ""), timeout=5)
    try:
        return await connection.fetchval(sql)
    finally:
        await connection.close(timeout=5)


async def all_gone(pids: dict[str, int]) -> None:
    async def gone() -> bool:
        return all(identity(pid) is None for pid in pids.values())

    await eventually(gone, within=10)


async def test_a_killed_parent_leaves_no_server_and_the_data_is_there_next_time(tmp_path: Path) -> None:
    first = StackProcess(tmp_path / "home")
    began = time.monotonic()
    said = first.start()
    assert time.monotonic() - began < 20  # one or two when nothing else runs
    await query(said["run"]["database_url"], "CREATE TABLE kept AS SELECT 42 AS answer")
    first.kill()
    await all_gone(said["pids"])
    assert read_run(tmp_path / "home") is None

    again = StackProcess(tmp_path / "home")
    said = again.start()
    assert await query(said["run"]["database_url"], "SELECT answer FROM kept") == 42
    assert again.stop() == 0
    await all_gone(said["pids"])
    assert not (tmp_path / "home" / "run.json").exists()


async def test_a_second_stack_on_the_same_home_is_refused_and_the_first_lives_on(tmp_path: Path) -> None:
    async with servers_alone(tmp_path) as first:
        assert first.run
        second = StackProcess(tmp_path)
        refused = await asyncio.to_thread(second.start)
        assert refused["refused"].startswith(f"VLog already runs on {tmp_path} (process {os.getpid()}, http://")
        assert second.close() == 3
        with pytest.raises(AlreadyRunning):
            await servers_alone(tmp_path).start()
        assert await query(first.run.database_url, "SELECT 1") == 1
        assert read_run(tmp_path) == first.run


async def test_two_homes_run_side_by_side(tmp_path: Path) -> None:
    async with servers_alone(tmp_path / "one") as one, servers_alone(tmp_path / "two") as two:
        assert one.run and two.run
        for name in ("api_url", "database_url", "temporal_address", "temporal_ui_url", "sealing_key"):
            assert getattr(one.run, name) != getattr(two.run, name)
        assert await query(one.run.database_url, "SELECT 1") == await query(two.run.database_url, "SELECT 1") == 1


async def test_what_is_named_is_used_and_nothing_of_its_kind_started(tmp_path: Path) -> None:
    names = {
        "database_url": "postgres://db.example/x",
        "temporal_address": "t.example:7233",
        "storage_url": "file:///b/p",
    }
    async with servers_alone(tmp_path, **names) as stack:
        assert stack.children == {}
        assert stack.run and stack.run.database_url == "postgresql+asyncpg://db.example/x"
        assert stack.run.temporal_address == "t.example:7233" and stack.run.temporal_ui_url is None
        assert stack.run.storage_url == "file:///b/p"
    assert not (tmp_path / "postgres").exists() and not (tmp_path / "temporal").exists()


EXTERNAL = {"database_url": "postgres://db.example/x", "temporal_address": "t.example:7233"}


async def test_a_failed_migration_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    migration = ("sh", "-c", "echo the schema is from the future; exit 1")
    stack = Stack(Settings(home=tmp_path, **EXTERNAL), programs=lambda *_: (), migration=migration)  # type: ignore[arg-type]
    with pytest.raises(CommandFailed, match=r"The migration exited with 1[\s\S]*from the future"):
        await stack.start()
    assert read_run(tmp_path) is None
    async with servers_alone(tmp_path, **EXTERNAL):
        pass  # the home is free again


async def test_programs_join_through_run_json_and_one_that_gives_up_ends_the_wait(tmp_path: Path) -> None:
    script = f"test -s {tmp_path}/run.json && echo joined; exit 1"
    broken = Program("broken", dying_with_us(("sh", "-c", script)), backoff_s=0.01)

    def programs(settings: Settings, run: object, workers: int) -> list[Program]:
        assert workers == 3
        return [broken, Program("steady", dying_with_us(("sleep", "60")))]

    settings = Settings(home=tmp_path, **EXTERNAL)  # type: ignore[arg-type]
    stack = Stack(settings, workers=3, programs=programs, migration=None)
    await stack.start()
    try:
        with pytest.raises(GaveUp, match="broken exited with 1"):
            await asyncio.wait_for(stack.wait(), 40)
    finally:
        pids = {name: child.pid for name, child in stack.children.items() if child.pid}
        await stack.stop()
    assert "joined" in (tmp_path / "logs" / "broken.log").read_text()
    await all_gone(pids)


async def test_a_cancelled_start_leaves_nothing(tmp_path: Path) -> None:
    stack = servers_alone(tmp_path)
    starting = asyncio.create_task(stack.start())
    while not (tmp_path / "pids" / "temporal").exists():
        await asyncio.sleep(0.02)
    pids = {name: child.pid for name, child in stack.children.items() if child.pid}
    assert set(pids) == {"postgres", "temporal"}
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    await all_gone(pids)


@pytest.fixture
def nobodys() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="vlog-test-"))
    os.chown(folder, 65534, 65534)
    yield folder
    shutil.rmtree(folder)


def as_nobody() -> list[str]:
    become = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    if works(*become, "--", sys.executable, "-c", "import runtime"):
        return [*become, "--"]
    # Python itself may live below a closed /root: nobody may then look, and only look, where root may.
    return [*become, "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search", "--"]


@pytest.mark.skipif(os.geteuid() != 0, reason="the other tests have run as somebody else already")
async def test_it_runs_as_anybody(nobodys: Path) -> None:
    stack = StackProcess(nobodys / "home", prefix=as_nobody())
    said = await asyncio.to_thread(stack.start)
    assert said["uid"] == 65534
    assert all(os.stat(f"/proc/{pid}").st_uid == 65534 for pid in said["pids"].values())
    assert await query(said["run"]["database_url"], "SELECT 1") == 1
    os.kill(said["pids"]["postgres"], signal.SIGKILL)
    await asyncio.sleep(0.2)

    async def answers() -> bool:
        try:
            return await query(said["run"]["database_url"], "SELECT 1") == 1
        except (OSError, asyncpg.PostgresError):
            return False

    await eventually(answers, within=10)
    noted = (nobodys / "home" / "pids").iterdir()
    now_running = {note.name: int(json.loads(note.read_text())["pid"]) for note in noted}
    assert set(now_running) == {"postgres", "temporal"}
    await asyncio.to_thread(stack.kill)
    await all_gone(now_running)
