"""Bodies: silence has a limit, and an early answer lets the client finish or cuts it off."""

import asyncio

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from api import bodies
from api.bodies import AnswerAfterBody, chunks
from api.errors import ApiError


def scope(**headers: str) -> Scope:
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return {"type": "http", "method": "PUT", "path": "/", "headers": raw, "query_string": b""}


def arriving(*messages: Message) -> Receive:
    waiting = list(messages)

    async def receive() -> Message:
        if not waiting:
            await asyncio.Event().wait()  # silence
        return waiting.pop(0)

    return receive


def piece(data: bytes, more: bool = True) -> Message:
    return {"type": "http.request", "body": data, "more_body": more}


async def test_a_client_that_falls_silent_is_let_go() -> None:
    request = Request(scope(), arriving(piece(b"a"), piece(b"b")))
    received = b""
    with pytest.raises(ApiError) as refusal:
        async for chunk in chunks(request, idle_s=0.05):
            received += chunk
    assert (received, refusal.value.status, refusal.value.code) == (b"ab", 408, "UPLOAD_STALLED")


async def answered(headers: dict[str, str], receive: Receive) -> tuple[dict[bytes, bytes], int]:
    """Refuse without reading, and tell the headers of the answer and how often the body was asked for."""
    asked = 0
    sent: list[Message] = []

    async def counting() -> Message:
        nonlocal asked
        asked += 1
        return await receive()

    async def send(message: Message) -> None:
        sent.append(message)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse("no", status_code=403)(scope, receive, send)

    await AnswerAfterBody(app)(scope(**headers), counting, send)
    return dict(sent[0]["headers"]), asked


async def test_a_short_rest_is_read_before_the_answer_and_the_connection_lives_on() -> None:
    rest = arriving(piece(b"x" * 1000), piece(b"y", more=False))
    headers, asked = await answered({"content_length": "1001"}, rest)
    assert b"connection" not in headers and asked == 2


async def test_a_rest_that_does_not_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "DRAIN_BYTES", 2500)
    headers, asked = await answered({"transfer_encoding": "chunked"}, arriving(*[piece(b"x" * 1000)] * 9))
    assert headers[b"connection"] == b"close" and asked == 3
    monkeypatch.setattr(bodies, "DRAIN_S", 0.05)
    headers, _ = await answered({"content_length": "1001"}, arriving())
    assert headers[b"connection"] == b"close"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [({}, None), ({"content_length": "0"}, None), ({"content_length": "9", "expect": "100-continue"}, b"close")],
)
async def test_nothing_is_asked_of_a_client_that_has_nothing_or_waits(
    headers: dict[str, str], expected: bytes | None
) -> None:
    got, asked = await answered(headers, arriving())
    assert (got.get(b"connection"), asked) == (expected, 0)
