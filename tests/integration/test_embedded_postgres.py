"""The embedded Postgres: made whole, locked, and none the worse for being killed."""

import asyncio
import os
import shutil
import signal
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from runtime import identities
from runtime.embedded import embedded_postgres
from runtime.home import make_secrets, read_secrets
from runtime.locate import postgres_binaries
from runtime.ports import reserve
from runtime.postgres import EmbeddedPostgres
from runtime.processes import identity
from runtime.supervisor import Child
from tests.support.eventually import eventually


async def query(postgres: EmbeddedPostgres, sql: str, **changed: str) -> object:
    url = postgres.url.replace("+asyncpg", "")
    connection = await asyncpg.connect(url, timeout=5, **changed)  # type: ignore[call-overload]
    try:
        return await connection.fetchval(sql)
    finally:
        await connection.close(timeout=5)


def postmaster(postgres: EmbeddedPostgres) -> int:
    return int((postgres.data / "postmaster.pid").read_text().split()[0])


async def test_it_starts_in_seconds_and_again_at_once_with_its_data(tmp_path: Path) -> None:
    began = time.monotonic()
    async with embedded_postgres(tmp_path) as postgres:
        assert time.monotonic() - began < 20
        assert await query(postgres, "SELECT current_user || current_database()") == "vlogvlog"
        assert await query(postgres, "SHOW fsync") == "on"
        assert await query(postgres, "SHOW timezone") == "UTC"
        await query(postgres, "CREATE TABLE kept AS SELECT 42 AS answer")
        pid = postmaster(postgres)
    assert identity(pid) is None
    assert stat.S_IMODE((tmp_path / "secrets.json").stat().st_mode) == 0o600
    began = time.monotonic()
    async with embedded_postgres(tmp_path) as postgres:
        assert time.monotonic() - began < 10
        assert await query(postgres, "SELECT answer FROM kept") == 42


async def test_a_bad_password_is_refused_and_the_role_is_no_superuser(tmp_path: Path) -> None:
    async with embedded_postgres(tmp_path, durable=False) as postgres:
        with pytest.raises(asyncpg.InvalidPasswordError):
            await query(postgres, "SELECT 1", password="wrong")
        with pytest.raises(asyncpg.InvalidPasswordError):
            await query(postgres, "SELECT 1", user="postgres", password="")
        assert await query(postgres, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user") is False
        assert await query(postgres, "SHOW listen_addresses") == "127.0.0.1"
        secrets = read_secrets(tmp_path)
        assert secrets and secrets.database_password not in "".join(
            path.read_text() for path in (tmp_path / "logs").iterdir()
        )


async def test_one_that_was_told_to_wait_for_its_clients_is_back_although_they_stay(tmp_path: Path) -> None:
    """SIGTERM is Postgres's "smart" shutdown: it lets nobody in, and pools never leave by themselves."""
    async with embedded_postgres(tmp_path) as postgres:
        first = postmaster(postgres)
        pool = await asyncpg.connect(postgres.url.replace("+asyncpg", ""), timeout=5)
        os.kill(first, signal.SIGTERM)

        async def answers_anew() -> bool:
            try:
                return await query(postgres, "SELECT 42") == 42 and postmaster(postgres) != first
            except (OSError, asyncpg.PostgresError):
                return False

        await eventually(answers_anew, within=60)
        pool.terminate()


async def test_a_killed_postmaster_is_back_within_seconds_on_the_same_port(tmp_path: Path) -> None:
    async with embedded_postgres(tmp_path) as postgres:
        await query(postgres, "CREATE TABLE kept AS SELECT 42 AS answer")
        os.kill(postmaster(postgres), signal.SIGKILL)

        async def answers() -> bool:
            try:
                return await query(postgres, "SELECT answer FROM kept") == 42
            except (OSError, asyncpg.PostgresError):
                return False

        await asyncio.sleep(0.2)
        await eventually(answers, within=10)


async def test_a_leaked_server_of_ours_is_stopped_before_the_next_start(tmp_path: Path) -> None:
    secrets = make_secrets()
    first = EmbeddedPostgres(tmp_path / "postgres", port=reserve().port, secrets=secrets, durable=False)
    await first.initialise()
    leaked = await asyncio.create_subprocess_exec(
        *first.program().argv, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    await eventually(first.is_ready, within=10)
    again = EmbeddedPostgres(tmp_path / "postgres", port=reserve().port, secrets=secrets, durable=False)
    await again.initialise()
    (tmp_path / "logs").mkdir()
    (tmp_path / "pids").mkdir()
    child = Child(again.program(), logs=tmp_path / "logs", pids=tmp_path / "pids")
    await child.start()
    try:
        assert await asyncio.wait_for(leaked.wait(), 5) == 0
        assert await query(again, "SELECT 1") == 1 and child.restarts == 0
    finally:
        await child.stop()


async def test_a_stale_pid_that_now_belongs_to_somebody_else_is_forgotten_and_they_live(tmp_path: Path) -> None:
    async with embedded_postgres(tmp_path, durable=False) as postgres:
        pass
    stranger = await asyncio.create_subprocess_exec("sleep", "60")
    try:
        (postgres.data / "postmaster.pid").write_text(f"{stranger.pid}\n{postgres.data}\n1\n1\n\n\n\n\n")
        async with embedded_postgres(tmp_path, durable=False) as postgres:
            assert await query(postgres, "SELECT 1") == 1
        assert stranger.returncode is None and identity(stranger.pid)
    finally:
        stranger.kill()
        await stranger.wait()


async def test_a_kill_while_the_data_folder_is_made_leaves_nothing_half(tmp_path: Path) -> None:
    half = tmp_path / "postgres" / "data.new"
    (half / "base").mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")
    async with embedded_postgres(tmp_path, durable=False) as postgres:
        assert await query(postgres, "SELECT 1") == 1
        assert not half.exists()


async def test_lost_secrets_are_made_anew_and_the_data_stays(tmp_path: Path) -> None:
    async with embedded_postgres(tmp_path, durable=False) as postgres:
        await query(postgres, "CREATE TABLE kept AS SELECT 42 AS answer")
        lost = postgres.url
    (tmp_path / "secrets.json").unlink()
    async with embedded_postgres(tmp_path, durable=False) as postgres:
        assert await query(postgres, "SELECT answer FROM kept") == 42
        assert postgres.url.split("@")[0] != lost.split("@")[0]


async def test_data_of_another_major_version_is_served_by_that_version(tmp_path: Path) -> None:
    majors = {postgres_binaries(major).major for major in (16, 18)}
    assert majors == {16, 18}


@pytest.fixture
def outside() -> Iterator[Path]:
    """A folder that another user can reach; pytest's own are closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="vlog-test-"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root needs to become somebody else")
async def test_as_root_without_user_namespaces_it_runs_as_nobody(
    outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = shutil.which
    monkeypatch.setattr("runtime.identities.shutil.which", lambda name: None if name == "unshare" else found(name))
    home = outside / "home"
    for _ in range(2):
        async with embedded_postgres(home, durable=False) as postgres:
            assert await query(postgres, "SELECT 1") == 1
            assert os.stat(f"/proc/{postmaster(postgres)}").st_uid == identities.NOBODY
    monkeypatch.undo()
    async with embedded_postgres(home, durable=False) as postgres:  # who owns the data goes on serving it
        assert os.stat(f"/proc/{postmaster(postgres)}").st_uid == identities.NOBODY
