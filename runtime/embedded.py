"""A single embedded server for as long as a block lasts: for tests and tools that need no whole service."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from runtime.files import make_private
from runtime.home import Secrets, make_secrets, read_secrets, write_secrets
from runtime.ports import Reserved, reserve
from runtime.postgres import EmbeddedPostgres
from runtime.supervisor import Child, Program
from runtime.temporal_server import EmbeddedTemporal


@asynccontextmanager
async def embedded_postgres(folder: Path, *, durable: bool = True) -> AsyncIterator[EmbeddedPostgres]:
    """Run Postgres in a folder that nobody else uses; its `url` is for SQLAlchemy."""
    known = read_secrets(make_private(folder))
    secrets: Secrets = known or make_secrets()
    port = reserve()
    postgres = EmbeddedPostgres(folder / "postgres", port=port.port, secrets=secrets, durable=durable)
    await postgres.initialise(new_secrets=known is None)
    write_secrets(folder, secrets)
    async with _served(folder, postgres.program(), port):
        yield postgres


@asynccontextmanager
async def embedded_temporal(folder: Path, *, namespace: str = "default") -> AsyncIterator[EmbeddedTemporal]:
    """Run Temporal in a folder that nobody else uses."""
    port, ui_port = reserve(), reserve()
    temporal = EmbeddedTemporal(
        make_private(folder) / "temporal", port=port.port, ui_port=ui_port.port, namespace=namespace
    )
    async with _served(folder, temporal.program(), port, ui_port):
        yield temporal


@asynccontextmanager
async def _served(folder: Path, program: Program, *ports: Reserved) -> AsyncIterator[Child]:
    child = Child(program, logs=make_private(folder / "logs"), pids=make_private(folder / "pids"))
    try:
        await child.start()
        yield child
    finally:
        await child.stop()
        for port in ports:
            port.release()
