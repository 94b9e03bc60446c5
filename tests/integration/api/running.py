"""The API on real sockets, over a real Postgres, a real folder and a real Temporal."""

import asyncio
import random
import shutil
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI
from sqlalchemy import text
from temporalio.client import Client

from api.app import create_app
from mirror.sealing import shared_sealing_key
from mirror.sessions import Database
from runtime.joining import Joined
from runtime.locate import temporal_binary
from runtime.settings import Settings
from runtime.temporal import connect
from storage.local import LocalStore

ENDS_POLLS = "frontend.enableCancelWorkerPollsOnShutdown=true"  # as the embedded one has it
NOWHERE = "127.0.0.1:1"  # a Temporal that is away: nobody listens there


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class TemporalServer:
    """Temporal's dev server on a port of its own; it dies with the tests."""

    def __init__(self, port: int | None = None, *, arguments: Sequence[str] = ()) -> None:
        self.port, self._arguments = port or free_port(), arguments
        self.address = f"127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with_us = ["setpriv", "--pdeathsig", "KILL", "--"] if shutil.which("setpriv") else []
        argv = [temporal_binary(), "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--log-level", "error"]
        self._process = subprocess.Popen(
            [*with_us, *argv, "--port", str(self.port), "--dynamic-config-value", ENDS_POLLS, *self._arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 20
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise RuntimeError("Temporal did not start")
            time.sleep(0.05)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(timeout=10)
            self._process = None


@dataclass(frozen=True)
class Api:
    """A running API and everything behind it."""

    url: str
    http: httpx.AsyncClient
    database: Database
    temporal: Client
    root: Path  # of the storage
    app: FastAPI

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    def files(self) -> dict[str, bytes]:
        """Give everything that lies in storage, temporary files included."""
        return {p.relative_to(self.root).as_posix(): p.read_bytes() for p in self.root.rglob("*") if p.is_file()}

    async def rows(self, sql: str, **values: Any) -> list[Any]:
        async with self.database.read() as session:
            return list((await session.execute(text(sql), values)).mappings())

    async def change(self, sql: str, **values: Any) -> None:
        async with self.database.write() as session:
            await session.execute(text(sql), values)

    async def raw(self, data: bytes, *, timeout_s: float = 10) -> bytes:
        """Send bytes as they are, which no HTTP client would, and read until the server closes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(data)
            await writer.drain()
            async with asyncio.timeout(timeout_s):
                return await reader.read()
        finally:
            writer.close()


@asynccontextmanager
async def serving(
    database_url: str,
    root: Path,
    *,
    temporal_address: str = NOWHERE,
    temporal_ui_url: str | None = None,
    store: Any = None,  # a Store; none: the folder `root`
    sealing_key: str | None = None,
    **settings: Any,
) -> AsyncIterator[Api]:
    """Serve the app in this event loop, behind the same server as in production."""
    database = Database(database_url, pool_size=5)
    async with database.write() as session:
        # Tests share a Temporal, and a workflow's id is made of these numbers.
        await session.execute(text("SELECT setval('videos_id_seq', :first)"), {"first": random.randrange(1, 10**12)})
    temporal = await connect(Joined(database_url, temporal_address, "default", root.as_uri()), lazy=True)
    root.mkdir(parents=True, exist_ok=True)
    chosen = Settings(home=root.parent / "home", **settings)
    app = create_app(
        chosen,
        database,
        store or LocalStore(root),
        temporal,
        temporal_ui_url=temporal_ui_url,
        sealing_key=sealing_key or await shared_sealing_key(database),
    )
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=1))
    running = asyncio.create_task(server._serve(sockets=[listener]))
    try:
        while not server.started:
            assert not running.done(), running.result()
            await asyncio.sleep(0.01)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        async with httpx.AsyncClient(base_url=url, timeout=30, trust_env=False, verify=False) as http:
            yield Api(url, http, database, temporal, root, app)
    finally:
        server.should_exit = True
        await running
        await database.close()
