"""A receiver of webhooks on a real socket: it answers as it is told, and keeps what it got."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Got:
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self.raw)
        return parsed


@dataclass
class Receiver:
    """`answers` are used up one by one; when none is left it says 200."""

    port: int = 0
    got: list[Got] = field(default_factory=list)
    answers: list[bytes] = field(default_factory=list)
    hang: bool = False  # takes the request, and never answers
    open: set[asyncio.StreamWriter] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hooks/secret-path"

    def will_say(self, *statuses: int, headers: str = "", body: bytes = b"") -> None:
        for status in statuses:
            head = f"HTTP/1.1 {status} Word\r\ncontent-length: {len(body)}\r\n{headers}\r\n"
            self.answers.append(head.encode() + body)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open.add(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[1:-2]
            headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
            raw = await reader.readexactly(int(headers["content-length"]))
            self.got.append(Got(headers, raw))
            if self.hang:
                await reader.read()  # until the other side has had enough
            else:
                usual = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
                writer.write(self.answers.pop(0) if self.answers else usual)
                await writer.drain()
        self.open.discard(writer)
        writer.close()


@asynccontextmanager
async def receiving(receiver: Receiver | None = None) -> AsyncIterator[Receiver]:
    """Listen; a receiver that has a port listens there again."""
    made = receiver or Receiver()
    server = await asyncio.start_server(made._serve, "127.0.0.1", made.port)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        for writer in made.open:
            writer.close()
        await server.wait_closed()
