"""API processes that come and go behind one address, as behind a proxy or a Kubernetes service."""

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx

from tests.e2e.service import ROOT, Service
from tests.integration.api.running import free_port


class Apis:
    """Some APIs of one service. A connection goes to the first that takes it; the oldest one is replaced by a roll."""

    def __init__(self, service: Service, log: Path) -> None:
        self._service, self._log = service, log
        self._running: list[tuple[int, subprocess.Popen[bytes]]] = []
        self.url = ""

    async def add(self) -> None:
        port = free_port()
        with self._log.open("ab") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "api"],
                cwd=ROOT,
                env=self._service.environment | {"VLOG_PORT": str(port), "VLOG_LOG_FILES": "false"},
                stdout=out,
                stderr=out,
            )
        self._running.append((port, process))
        deadline = time.monotonic() + 60
        async with httpx.AsyncClient(timeout=2, trust_env=False) as http:
            while True:
                with suppress(httpx.HTTPError):
                    if (await http.get(f"http://127.0.0.1:{port}/health")).status_code == 200:
                        return
                assert process.poll() is None and time.monotonic() < deadline, self._log.read_text()[-3000:]
                await asyncio.sleep(0.1)

    async def roll(self) -> int:
        """Start another one, then end the oldest in the way of a deployment; gives its exit code."""
        await self.add()
        _, oldest = self._running.pop(0)
        oldest.send_signal(signal.SIGTERM)
        return await asyncio.to_thread(oldest.wait, 30)

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass bytes both ways until either side has gone."""
        for port, _ in list(self._running):
            with suppress(OSError):
                there = await asyncio.open_connection("127.0.0.1", port)
                await asyncio.gather(_copy(reader, there[1]), _copy(there[0], writer))
                return
        writer.close()

    def end(self) -> None:
        for _, process in self._running:
            process.kill()
            process.wait(10)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


@asynccontextmanager
async def rolling(service: Service, log: Path, count: int = 2) -> AsyncIterator[Apis]:
    """Serve so many APIs behind one address."""
    apis = Apis(service, log)
    try:
        for _ in range(count):
            await apis.add()
        server = await asyncio.start_server(apis.connected, "127.0.0.1", 0)
        apis.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield apis
        finally:
            server.close()
    finally:
        apis.end()
