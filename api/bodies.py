"""Request bodies: read with a limit on silence, and never left half-read behind an early refusal."""

import asyncio
from collections.abc import AsyncGenerator
from typing import TypeVar

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import ApiError
from api.errors import answer as answer_with

IDLE_S = 60.0  # a client that sends nothing for this long has gone
DRAIN_S = 2.0
DRAIN_BYTES = 64 << 20
SMALL_BYTES = 64 << 10
ANY_BYTES = 1 << 20  # of what is no file
SMALL_S = 30.0

Asked = TypeVar("Asked", bound=BaseModel)


async def chunks(request: Request, *, idle_s: float = IDLE_S) -> AsyncGenerator[bytes, None]:
    """Give the body as it arrives; a client that falls silent is let go."""
    stream = request.stream()
    while True:
        try:
            async with asyncio.timeout(idle_s):
                chunk = await anext(stream, None)
        except TimeoutError as error:
            raise ApiError(408, "UPLOAD_STALLED", f"Nothing arrived for {idle_s:.0f} seconds.") from error
        if chunk is None:
            return
        if chunk:
            yield chunk


async def discard(request: Request) -> None:
    """Read a body to its end and keep nothing: the client gets its answer when it has finished talking."""
    async for _ in chunks(request):
        pass


async def small_json(request: Request, model: type[Asked], most_bytes: int = SMALL_BYTES) -> Asked:
    """Read a small JSON body, or none: as FastAPI would, but only so much of it, and not before its sender is known."""
    data = bytearray()
    try:
        async with asyncio.timeout(SMALL_S):
            async for chunk in chunks(request):
                data += chunk
                if len(data) > most_bytes:
                    raise ApiError(413, "REQUEST_TOO_LARGE", f"This takes at most {most_bytes} bytes of JSON.")
    except TimeoutError as error:
        raise ApiError(408, "UPLOAD_STALLED", f"The request was not complete after {SMALL_S:.0f} seconds.") from error
    try:
        return model.model_validate_json(bytes(data).strip() or b"{}")
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_url=False, include_input=False)) from None


class BoundedBodies:
    """Keep a body that is no file from filling the memory.

    FastAPI reads all of a JSON body before it looks at who sends it, so that a stranger could send gigabytes.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not self._is_bounded(scope["path"]):
            await self.app(scope, receive, send)
            return
        declared = Headers(scope=scope).get("content-length", "0")
        if declared.isdecimal() and int(declared[:20]) > ANY_BYTES:
            await answer_with(ApiError(413, "REQUEST_TOO_LARGE", f"This takes at most {ANY_BYTES} bytes."))(
                scope, receive, send
            )
            return
        left = ANY_BYTES

        async def count() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            # Whoever reads it hears that the client has gone, and gives up.
            return message if left >= 0 else {"type": "http.disconnect"}

        await self.app(scope, count, send)

    @staticmethod
    def _is_bounded(path: str) -> bool:
        files = path.rstrip("/") == "/api/videos" or path.startswith(("/api/uploads", "/api/worker/output/"))
        return path.startswith("/api/") and not files


class AnswerAfterBody:
    """Read on for a moment before an answer that comes while the client still sends.

    Closing a connection with unread bytes makes the kernel send a reset, and the client never sees
    why it was refused. What does not end soon is cut off: the answer then closes the connection.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        unread = "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
        # Such a client waits for a go-ahead; an early answer tells it not to send at all.
        waits = headers.get("expect", "").lower() == "100-continue"

        async def watch() -> Message:
            nonlocal unread, waits
            message = await receive()
            waits = False
            if message["type"] != "http.request" or not message.get("more_body", False):
                unread = False
            return message

        async def drain() -> None:
            left = DRAIN_BYTES
            try:
                async with asyncio.timeout(DRAIN_S):
                    while unread and left > 0:
                        left -= len((await watch()).get("body", b""))
            except TimeoutError:
                pass

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start" and unread:
                if not waits:
                    await drain()
                if unread:
                    MutableHeaders(scope=message)["connection"] = "close"
            await send(message)

        await self.app(scope, watch, answer)
