"""A cable between a browser and the service that one can pull out half-way."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

CHUNK = 64 * 1024


@dataclass
class Cable:
    """Carries bytes both ways. It breaks once, when so many have gone to the service, and is mended by hand."""

    service: str
    breaks_after: int | None = None
    sent: int = 0  # to the service, over all connections
    url: str = ""
    broken: asyncio.Event = field(default_factory=asyncio.Event)
    _mended: bool = True
    _open: set[asyncio.StreamWriter] = field(default_factory=set)

    def mend(self) -> None:
        self._mended = True

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._mended:
            writer.transport.abort()
            return
        parts = urlsplit(self.service)
        far_reader, far_writer = await asyncio.open_connection(parts.hostname, parts.port)
        self._open |= {writer, far_writer}
        try:
            await asyncio.gather(self._pump(reader, far_writer, counted=True), self._pump(far_reader, writer))
        finally:
            for each in (writer, far_writer):
                self._open.discard(each)
                each.close()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, counted: bool = False) -> None:
        with suppress(OSError):
            while data := await reader.read(CHUNK):
                writer.write(data)
                await writer.drain()
                if counted:
                    self.sent += len(data)
                    if self.breaks_after is not None and self.sent > self.breaks_after:
                        self._break()
            with suppress(OSError):
                writer.write_eof()

    def _break(self) -> None:
        self.breaks_after, self._mended = None, False
        for writer in list(self._open):
            writer.transport.abort()
        self.broken.set()


@asynccontextmanager
async def cable(service: str) -> AsyncIterator[Cable]:
    line = Cable(service)
    server = await asyncio.start_server(line.carry, "127.0.0.1", 0)
    line.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield line
    finally:
        server.close()
        for writer in list(line._open):
            writer.transport.abort()
