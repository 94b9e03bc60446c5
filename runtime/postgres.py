"""Embedded Postgres: a real server from a wheel, for one home, reached over loopback with a password.

Everything here assumes that the caller holds the home (runtime.home.hold): two makers of one data folder would meet.
"""

import asyncio
import contextlib
import shutil
import signal
from pathlib import Path

import asyncpg

from runtime.files import make_private, sync_folder, write_private
from runtime.home import Secrets
from runtime.identities import Running, owner_for
from runtime.locate import PostgresBinaries, postgres_binaries
from runtime.one_shot import run_to_end
from runtime.processes import command_line, dying_with_us, stop_process
from runtime.supervisor import Program

ROLE = DATABASE = "vlog"


class EmbeddedPostgres:
    """One data folder and the server on it."""

    def __init__(self, folder: Path, *, port: int, secrets: Secrets, durable: bool = True) -> None:
        self.folder = folder.resolve()  # one spelling, by which a leaked server is recognised
        self.data = self.folder / "data"
        self.port = port
        self._secrets = secrets
        self._durable = durable  # False only in tests: a power cut may then lose everything
        self._binaries: PostgresBinaries | None = None
        self._running: Running | None = None

    @property
    def url(self) -> str:
        return f"postgresql+asyncpg://{ROLE}:{self._secrets.database_password}@127.0.0.1:{self.port}/{DATABASE}"

    async def initialise(self, *, new_secrets: bool = False) -> None:
        """Make the data folder if there is none; with new secrets, teach an existing one its passwords.

        Safe to repeat, and to be killed in: the folder is made beside and appears whole.
        """
        make_private(self.folder)
        self._binaries = await asyncio.to_thread(postgres_binaries, _major_of(self.data))
        self._running = await asyncio.to_thread(owner_for, self.folder, self.data)
        if self.data.exists():
            if new_secrets:
                await self.prepare()
                await self._command_alone(self.data, self._passwords("ALTER"))
            return
        beside = self.folder / "data.new"
        await asyncio.to_thread(shutil.rmtree, beside, ignore_errors=True)
        password_file = self.folder / "superuser-password"
        write_private(password_file, self._secrets.postgres_password.encode())
        try:
            self._running.give(password_file)
            await self._initdb(beside, password_file)
        finally:
            password_file.unlink()
        await self._command_alone(beside, self._passwords("CREATE"))
        beside.rename(self.data)
        await asyncio.to_thread(sync_folder, self.folder)

    def program(self) -> Program:
        """Describe the server to a supervisor; initialise first."""
        options = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            # A socket's path may be at most 107 bytes long, and a home's may be longer.
            "unix_socket_directories": "",
            "timezone": "UTC",
            "log_timezone": "UTC",
            "max_connections": "200",
        }
        if not self._durable:
            options |= {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}
        argv = (self._binary("postgres"), "-D", str(self.data), *_options(options))
        return Program(
            name="postgres",
            argv=self._as_owner(argv, signal.SIGINT),
            prepare=self.prepare,
            ready=self.is_ready,
            stuck=self.is_shutting_down,
            stop_signal=signal.SIGINT,  # "fast": SIGTERM would wait for every client to leave by itself
            stop_within_s=15.0,
        )

    async def prepare(self) -> None:
        """Clear the way for a start: stop a leaked server of ours, forget the pid of a dead one.

        Postgres itself only asks whether the pid exists, so a zombie or a reused pid would keep it from starting.
        """
        pid_file = self.data / "postmaster.pid"
        try:
            pid = int(pid_file.read_text().split("\n", 1)[0])
        except (FileNotFoundError, ValueError):
            return
        if f" {self.data} " in f" {' '.join(command_line(pid))} ":
            await stop_process(pid, gently=signal.SIGINT, within_s=10.0)
        # Backends that outlived a killed postmaster are not missed by this: Postgres finds their shared memory.
        pid_file.unlink(missing_ok=True)

    async def is_ready(self) -> bool:
        """Tell whether the server takes our password and answers; a port that is open is not enough."""
        try:
            await self._knock()
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
            return False
        return True

    async def is_shutting_down(self) -> bool:
        """Tell a server that lets nobody in and waits for those who are: after a SIGTERM, as long as pools live."""
        try:
            await self._knock()
        except asyncpg.CannotConnectNowError as error:
            return "shutting down" in str(error)
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
            pass
        return False

    async def _knock(self) -> None:
        connection = await asyncpg.connect(
            host="127.0.0.1",
            port=self.port,
            user=ROLE,
            password=self._secrets.database_password,
            database=DATABASE,
            timeout=5,
            ssl=False,
        )
        with contextlib.suppress(Exception):  # it has answered; how we part does not matter
            await connection.close(timeout=2)

    async def _initdb(self, data: Path, password_file: Path) -> None:
        argv = (
            self._binary("initdb"),
            *("-D", str(data), "-U", "postgres", "--auth=scram-sha-256", f"--pwfile={password_file}"),
            # C sorts and compares by bytes: the same on every machine, and no system update can break an index.
            *("--encoding=UTF8", "--locale=C", "--no-instructions"),
            *(() if self._durable else ("--no-sync",)),
        )
        await run_to_end("initdb", self._as_owner(argv), timeout_s=120)

    async def _command_alone(self, data: Path, commands: str) -> None:
        """Run commands with no server, and so with no password, port or window for anybody else."""
        options = _options({"exit_on_error": "on"})  # else it prints the error and ends as if all were well
        argv = (self._binary("postgres"), "--single", "-j", "-D", str(data), *options, "postgres")
        await run_to_end("postgres --single", self._as_owner(argv), timeout_s=120, given=commands.encode())

    def _passwords(self, verb: str) -> str:
        # Ours are URL-safe base64: nothing in them needs quoting. With -j a command ends at an empty line.
        commands = [
            f"{verb} ROLE {ROLE} LOGIN CREATEDB PASSWORD '{self._secrets.database_password}'",
            f"CREATE DATABASE {DATABASE} OWNER {ROLE}"
            if verb == "CREATE"
            else f"ALTER ROLE postgres PASSWORD '{self._secrets.postgres_password}'",
        ]
        return "".join(f"{command};\n\n" for command in commands)

    def _as_owner(self, argv: tuple[str, ...], order: signal.Signals = signal.SIGKILL) -> tuple[str, ...]:
        assert self._running, "initialise first"
        return (*self._running.prefix, *dying_with_us(argv, order))

    def _binary(self, name: str) -> str:
        assert self._binaries, "initialise first"
        return self._binaries[name]


def _major_of(data: Path) -> int | None:
    try:
        return int((data / "PG_VERSION").read_text())
    except (FileNotFoundError, ValueError):
        return None


def _options(options: dict[str, str]) -> tuple[str, ...]:
    return tuple(part for name, value in options.items() for part in ("-c", f"{name}={value}"))
