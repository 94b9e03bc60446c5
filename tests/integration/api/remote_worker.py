"""A remote worker in this process: all of it but the process, against a real API."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from activities.failures import FailureInterceptor
from contracts.queues import Pool
from media.gpu import Gpu
from media.tools import Toolbox
from runtime.settings import Settings
from storage.cache import Cache
from storage.http_calls import WorkerCalls
from storage.local import LocalStore
from tests.integration.api.running import Api
from tests.integration.api.workers import Machine
from workers.remote import Kit, RemoteWorker
from workers.remote_api import RemoteApi
from workers.room import Room

SLOTS = {Pool.CPU: 1, Pool.PROBE: 1}
ABOUT = {"capabilities": {"pools": [*SLOTS], "slots": {pool.value: count for pool, count in SLOTS.items()}}}


@asynccontextmanager
async def working(api: Api, machine: Machine, home: Path, tools: Toolbox, **settings: Any) -> AsyncIterator[None]:
    """Let a registered machine ask for work, until the block ends."""
    chosen = Settings(home=home, worker_heartbeat_interval=1, **settings)
    work, failures = LocalStore(home / "work"), FailureInterceptor()
    kit = Kit(chosen, tools, Gpu(), work, Cache(home / "cache", limit_bytes=1 << 30, reserve_bytes=0))
    room = Room(1 << 40, work.free_bytes, reserve_bytes=0, encoder_bytes=1)
    calls, stopping = WorkerCalls(api.url, machine.key), asyncio.Event()
    worker = RemoteWorker(RemoteApi(calls), kit, room, SLOTS, failures)
    failures.health = worker.quarantine

    async def serve() -> None:
        try:
            await worker.run(stopping, ABOUT)
        finally:
            await calls.aclose()  # as the end of its process would: what it has not said by now it never says

    serving = asyncio.create_task(serve())
    try:
        yield
    finally:
        stopping.set()
        await serving
