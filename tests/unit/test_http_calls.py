"""Where a worker's key may be sent without a word, and what the answers to its calls mean."""

import asyncio

import pytest

from contracts.errors import ObjectMissing, ScratchFull, StorageAway, StorageUnavailable, VlogError
from storage import http_calls
from storage.http_calls import Away, ClaimGone, Refused, StorageSilent, WorkerCalls, is_open_to_all

OURS = '{"error": "%s", "detail": "A sentence."}'
A_PROXYS = "<html>There is nothing at this address.</html>"


@pytest.mark.parametrize(
    ("url", "is_open"),
    [
        ("https://vlog.example.org", False),
        ("http://vlog.example.org", True),
        ("http://192.168.1.5:9000", True),
        ("http://127.0.0.1:9000", False),
        ("http://[::1]:9000", False),
    ],
)
def test_over_plain_http_a_key_can_be_read_unless_it_stays_here(url: str, is_open: bool) -> None:
    assert is_open_to_all(url) is is_open


@pytest.mark.parametrize(
    ("status", "body", "meaning"),
    [
        (404, OURS % "OBJECT_MISSING", ObjectMissing),
        (404, A_PROXYS, Away),  # it does not know the API just now: no source is lost for that
        (507, OURS % "STORAGE_FULL", ScratchFull),  # it waits for room, as local workers do
        (409, OURS % "CLAIM_EXPIRED", ClaimGone),
        (403, OURS % "WORKER_DISABLED", Refused),
        (413, A_PROXYS, Refused),
        (502, A_PROXYS, Away),
        (503, OURS % "TEMPORAL_UNAVAILABLE", Away),
        (503, OURS % "STORAGE_UNAVAILABLE", StorageSilent),
    ],
)
async def test_what_an_answer_means(status: int, body: str, meaning: type[VlogError]) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 {status} Said\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        writer.write((head + body).encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    calls = WorkerCalls(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", "key")
    try:
        with pytest.raises(VlogError) as asked:
            await calls.ask("GET", "/api/worker/source/uploads/1.mp4", claim="claim")
        with pytest.raises(VlogError) as read:
            async with calls.stream("/api/worker/source/uploads/1.mp4", claim="claim"):
                pass
        assert (asked.type, read.type) == (meaning, meaning)
    finally:
        await calls.aclose()
        server.close()
        await server.wait_closed()


@pytest.mark.parametrize(
    ("health", "meaning"),
    [('{"storage": {"ok": false}}', StorageAway), ('{"storage": {"ok": true}}', StorageUnavailable)],
    ids=["all of it", "one file"],
)
async def test_a_storage_that_leaves_the_api_without_an_answer_is_asked_about_in_the_end(
    monkeypatch: pytest.MonkeyPatch, health: str, meaning: type[VlogError]
) -> None:
    """A step that waited on would run into its time limit: a try, for what no try can mend."""
    monkeypatch.setattr(http_calls, "STORAGE_S", 0.3)
    asked: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).decode().split()[1]
        asked.append(path)
        body = health if path == "/api/health" else OURS % "STORAGE_UNAVAILABLE"
        writer.write(f"HTTP/1.1 503 Away\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    calls = WorkerCalls(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", "key")
    try:
        with pytest.raises(VlogError) as told:
            await calls.insist("GET", "/api/worker/source/uploads/1.mp4", claim="claim")
    finally:
        await calls.aclose()
        server.close()
        await server.wait_closed()
    assert told.type is meaning
    assert len(asked) > 2 and asked.count("/api/health") == 1
