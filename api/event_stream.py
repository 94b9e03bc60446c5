"""Server-sent events on the wire: one response per stream, which ends when its reader goes, or we do."""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import structlog
from pydantic import BaseModel
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from api.streams import Stream

log = structlog.get_logger(__name__)

SEND_S = 60.0  # a reader who takes nothing for so long has gone
PING = b"event: ping\ndata: {}\n\n"


def event(name: str, data: BaseModel | dict[str, Any]) -> bytes:
    """Write one event; JSON has no line breaks, so it is one line of data."""
    text = data.model_dump_json() if isinstance(data, BaseModel) else json.dumps(data)
    return f"event: {name}\ndata: {text}\n\n".encode()


class EventStream(Response):
    """Send a stream's frames until it is closed or nobody reads them.

    Not Starlette's StreamingResponse: it would notice a reader who went away silently only with the next frame.
    """

    media_type = "text/event-stream"

    def __init__(self, stream: Stream[Any], leave: Callable[[], None], *, retry_ms: int, ping_s: float) -> None:
        # No proxy may collect frames, or they arrive when nobody needs them any more.
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._stream, self._leave = stream, leave
        self._retry_ms, self._ping_s = retry_ms, ping_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        watching = asyncio.create_task(self._close_when_gone(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await _send(send, f"retry: {self._retry_ms}\n\n".encode())
            async for frame in self._stream.frames(PING, self._ping_s):
                await _send(send, frame)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except TimeoutError:
            log.info("event_stream_dropped", why="its reader took nothing", seconds=SEND_S)  # the server closes it
        finally:
            self._leave()
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching

    async def _close_when_gone(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._stream.close()


async def _send(send: Send, frame: bytes) -> None:
    async with asyncio.timeout(SEND_S):
        await send({"type": "http.response.body", "body": frame, "more_body": True})
