"""The embedded service: every server a home needs, started in order, kept alive, stopped in reverse.

Only this starts servers. What the settings name as running elsewhere is used, and nothing of its kind started.
Start it in the main thread: the kernel ends the children when the thread that started them ends.
"""

import asyncio
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import BinaryIO, Self

import structlog

from runtime.files import make_private
from runtime.home import (
    AlreadyRunning,
    RunFile,
    Secrets,
    hold,
    make_secrets,
    read_secrets,
    remove_run,
    write_run,
    write_secrets,
)
from runtime.joining import asyncpg_url, default_storage_url
from runtime.leftovers import clear_unfinished, stop_leftovers
from runtime.one_shot import run_to_end
from runtime.ports import Reserved, reserve
from runtime.postgres import EmbeddedPostgres
from runtime.processes import dying_with_us
from runtime.programs import MIGRATION, own_environment, own_programs
from runtime.settings import Settings
from runtime.supervisor import Child, Echo, GaveUp, Program
from runtime.temporal_server import EmbeddedTemporal

__all__ = ["AlreadyRunning", "GaveUp", "Stack"]

log = structlog.stdlib.get_logger(__name__)

API_PORT = 9000
MIGRATION_WITHIN_S = 600.0

Programs = Callable[[Settings, RunFile, int], Sequence[Program]]


class Stack:
    """One home's service, in this process and its children."""

    def __init__(
        self,
        settings: Settings,
        *,
        workers: int = 1,
        programs: Programs = own_programs,
        migration: Sequence[str] | None = MIGRATION,
        echo: Echo | None = None,
    ) -> None:
        self.settings = settings
        self.run: RunFile | None = None
        self._workers = workers
        self._programs = programs
        self._migration = migration
        self._echo = echo
        self._home = settings.home
        self._servers: list[Child] = []  # in the order of starting
        self._own: list[Child] = []
        self._ports: list[Reserved] = []
        self._lock: BinaryIO | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def children(self) -> dict[str, Child]:
        return {child.name: child for child in (*self._servers, *self._own)}

    async def start(self) -> RunFile:
        """Start everything, and return once the API answers.

        Raises AlreadyRunning, ServerMissing, PortTaken, CommandFailed (the migration) or GaveUp; nothing is
        left running then, nor when cancelled.
        """
        self._lock = await hold(self._home)
        try:
            self.run = await self._start()
        except BaseException:
            await self.stop()
            raise
        return self.run

    async def wait(self) -> None:
        """Wait until it is stopped. Raises GaveUp when a child is beyond help; then stop the rest."""
        ends = [asyncio.create_task(child.ended()) for child in self.children.values()]
        try:
            ended, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                task.result()
        finally:
            for task in ends:
                task.cancel()

    async def stop(self) -> None:
        """Stop everything, in reverse; workers and API first, who get five seconds to drain. Safe to repeat."""
        await asyncio.gather(*(child.stop() for child in self._own))
        for server in reversed(self._servers):
            await server.stop()
        self._own, self._servers = [], []
        if self.run:
            remove_run(self._home)
            self.run = None
        for port in self._ports:
            port.release()
        self._ports = []
        if self._lock:
            self._lock.close()

    async def _start(self) -> RunFile:
        for name in ("logs", "pids"):
            make_private(self._home / name)
        for name in await stop_leftovers(self._home / "pids"):
            log.warning("stopped what an earlier run had left running", child=name)
        await self._tidy()
        secrets = read_secrets(self._home) or make_secrets()
        database_url = await self._database(secrets)
        write_secrets(self._home, secrets)  # after the database has learned them: see make_secrets
        temporal = await self._temporal()
        self.run = self._describe(database_url, temporal, secrets)
        write_run(self._home, self.run)  # before those who join through it
        await self._migrate()
        self._own = [self._child(program) for program in self._programs(self.settings, self.run, self._workers)]
        await asyncio.gather(*(child.start() for child in self._own))
        return self.run

    async def _tidy(self) -> None:
        """Clear what a killed run left half-written, where all who write are ours and ended: embedded throughout."""
        named = self.settings
        if named.database_url or named.temporal_address or named.storage_url:
            return  # workers of another machine, or of this one, may be in the middle of their work
        if left := await asyncio.to_thread(clear_unfinished, self._home / "storage"):
            log.info("removed what an earlier run had left unfinished", files=left)

    async def _database(self, secrets: Secrets) -> str:
        if self.settings.database_url:
            return asyncpg_url(self.settings.database_url)
        postgres = EmbeddedPostgres(self._home / "postgres", port=self._port(), secrets=secrets)
        await postgres.initialise(new_secrets=read_secrets(self._home) != secrets)
        await self._serve(postgres.program())
        return postgres.url

    async def _temporal(self) -> EmbeddedTemporal | None:
        if self.settings.temporal_address:
            return None
        temporal = EmbeddedTemporal(
            self._home / "temporal",
            port=self._port(),
            ui_port=self._port(),
            namespace=self.settings.temporal_namespace or "default",
        )
        await self._serve(temporal.program())
        return temporal

    def _describe(self, database_url: str, temporal: EmbeddedTemporal | None, secrets: Secrets) -> RunFile:
        settings = self.settings
        if not settings.storage_url:
            make_private(self._home / "storage")
        api_port = reserve(settings.host, wanted=settings.port, preferred=API_PORT)
        self._ports.append(api_port)
        return RunFile(
            pid=os.getpid(),
            started_at=datetime.now(UTC),
            api_url=f"http://{_reachable(settings.host)}:{api_port.port}",
            temporal_address=temporal.address if temporal else settings.temporal_address or "",
            temporal_namespace=temporal.namespace if temporal else settings.temporal_namespace or "",
            temporal_ui_url=temporal.ui_url if temporal else None,
            database_url=database_url,
            storage_url=settings.storage_url or default_storage_url(settings),
            sealing_key=secrets.sealing_key,
        )

    async def _migrate(self) -> None:
        if self._migration:
            argv = dying_with_us(self._migration)
            environment = own_environment(self.settings)
            said = await run_to_end("The migration", argv, timeout_s=MIGRATION_WITHIN_S, environment=environment)
            (self._home / "logs" / "migrate.log").write_text(said + "\n")

    async def _serve(self, program: Program) -> None:
        server = self._child(program)
        self._servers.append(server)
        await server.start()
        log.info("server ready", child=program.name, pid=server.pid)

    def _child(self, program: Program) -> Child:
        return Child(program, logs=self._home / "logs", pids=self._home / "pids", echo=self._echo)

    def _port(self) -> int:
        self._ports.append(reserve())
        return self._ports[-1].port


def _reachable(host: str) -> str:
    """Name an address of this machine that reaches a server listening on `host`."""
    if host in ("0.0.0.0", ""):
        return "127.0.0.1"
    if host in ("::", "[::]"):
        return "[::1]"
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
