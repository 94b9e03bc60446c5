"""The end of the API's server."""

import asyncio
import socket

import uvicorn
from starlette.types import Receive, Scope, Send

from api.__main__ import Server


async def test_a_request_that_is_cut_off_may_tidy_up_before_the_server_is_gone() -> None:
    began, tidied = asyncio.Event(), False

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal tidied
        if scope["type"] != "http":
            return
        try:
            began.set()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.3)  # a file is closed and removed
            tidied = True

    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    server = Server(uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=1))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started:
        await asyncio.sleep(0.01)
    _, writer = await asyncio.open_connection(*listener.getsockname())
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    await began.wait()
    server.stop()
    await serving
    assert tidied
    writer.close()
