"""What a remote worker may meet where it expects its API: each call is answered as a test says."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from storage.http_calls import WorkerCalls

PAGE = b"<html>Welcome to the hotel's network</html>"


@dataclass(frozen=True)
class Said:
    status: int = 200
    body: bytes = PAGE
    headers: tuple[str, ...] = ("Content-Type: text/html",)

    def raw(self) -> bytes:
        lines = [f"HTTP/1.1 {self.status} Said", f"Content-Length: {len(self.body)}", *self.headers]
        return ("\r\n".join([*lines, "Connection: close"]) + "\r\n\r\n").encode() + self.body


def ours(status: int = 200, **body: object) -> Said:
    return Said(status, json.dumps(body).encode(), ("Content-Type: application/json",))


def refusal(status: int, code: str) -> Said:
    return ours(status, error=code, detail="A sentence.")


# What stands before an API says so when it is away, restarted, or behind a door.
ODD = (
    Said(200),
    Said(200, PAGE, ("Content-Type: text/html", 'ETag: "a page"')),
    Said(204, b""),
    Said(302, b"", ("Location: /login",)),
    Said(401),
    Said(403),
    Said(404),
    Said(409),
    Said(520),
    Said(521),
    Said(530),
    Said(200, b"no gzip", ("Content-Encoding: gzip",)),
)


@asynccontextmanager
async def answering(answer: Callable[[str, bytes], Awaitable[Said]]) -> AsyncIterator[WorkerCalls]:
    """Answer every call by `answer`, which is given its path and its body."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            first, *rest = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
            length = next((int(line[16:]) for line in rest if line.lower().startswith("content-length: ")), 0)
            said = await answer(first.split()[1], await reader.readexactly(length))
            writer.write(said.raw())
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    calls = WorkerCalls(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", "key")
    try:
        yield calls
    finally:
        await calls.aclose()
        server.close()
        await server.wait_closed()
