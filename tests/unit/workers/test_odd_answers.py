"""What stands between a remote worker and its API may answer anything: the worker asks again, and goes on living."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from contracts.queues import Pool
from storage.http_calls import Away, WorkerCalls
from workers.remote_api import RemoteApi

PAGE = b"<html>Welcome to the hotel's network</html>"


@asynccontextmanager
async def answering(status: int, body: bytes) -> AsyncIterator[RemoteApi]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            head = f"HTTP/1.1 {status} Odd\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            writer.write(head.encode() + body)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    calls = WorkerCalls(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", "key")
    try:
        yield RemoteApi(calls)
    finally:
        await calls.aclose()
        server.close()
        await server.wait_closed()


@pytest.mark.parametrize("body", [PAGE, b"", b"[]", b"null", json.dumps({"heartbeat_interval": None}).encode()])
async def test_an_answer_that_is_none_of_ours_is_nobody_s(body: bytes) -> None:
    async with answering(200, body) as api:
        for asked in (api.beat("idle"), api.claim(Pool.CPU, 3), api.progress("claim", None)):
            with pytest.raises(Away):
                await asked
