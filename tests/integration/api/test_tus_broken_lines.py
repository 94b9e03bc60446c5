"""Lines that break: what came counts, who looks is told of it, and nothing is begun twice or lost."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from sqlalchemy import text

from api import receiving
from api.receiving import Receiving
from storage.local_writing import LocalPartial
from tests.integration.api.running import Api
from tests.integration.api.test_tus import DATA, PIECE, TUS, b64, begin, offset, says, send
from tests.support.eventually import eventually


@asynccontextmanager
async def half_sent(api: Api, url: str, data: bytes) -> AsyncIterator[asyncio.StreamWriter]:
    """Send the beginning of a longer piece, and keep the line open.

    The API has read all of it: what the server below it holds when a line breaks is lost, and was never promised.
    """
    arrived, write = 0, receiving._Piece.write

    async def counted(piece: receiving._Piece, chunk: bytes) -> None:
        nonlocal arrived
        await write(piece, chunk)
        arrived += len(chunk)

    async def is_read() -> bool:
        return arrived == len(data)

    _, writer = await asyncio.open_connection("127.0.0.1", api.port)
    head = (
        f"PATCH {url} HTTP/1.1\r\nHost: localhost\r\nTus-Resumable: 1.0.0\r\nUpload-Offset: 0\r\n"
        f"Content-Type: {PIECE['Content-Type']}\r\nContent-Length: {len(DATA)}\r\n\r\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(receiving._Piece, "write", counted)
        writer.write(head.encode() + data)
        await writer.drain()
        await eventually(is_read, within=5, every=0.02)
    try:
        yield writer
    finally:
        writer.close()


@pytest.mark.parametrize("close", [True, False])
async def test_one_writes_at_a_time_and_what_came_before_the_line_broke_counts(lonely_api: Api, close: bool) -> None:
    api, url = lonely_api, await begin(lonely_api)
    async with half_sent(api, url, DATA[:150_000]) as writer:
        if not close:
            busy = await send(api, url, 0, DATA)
            assert says(busy) == (423, "UPLOAD_LOCKED") and busy.headers["retry-after"]
            assert says(await api.http.delete(url, headers=TUS)) == (423, "UPLOAD_LOCKED")
            assert await api.rows("SELECT id FROM videos") == []
        writer.close()

    async def came() -> bool:
        return await offset(api, url) == 150_000

    await eventually(came, within=5, every=0.05)
    answer = await send(api, url, 150_000, DATA[150_000:])
    assert answer.status_code == 204 and list(api.files().values()) == [DATA]


async def test_who_looks_right_after_the_line_broke_hears_of_all_that_came(
    lonely_api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    api, url, really = lonely_api, await begin(lonely_api), LocalPartial.keep

    async def slow(partial: LocalPartial, counted: int | None = 0) -> int:
        await asyncio.sleep(0.3)
        return await really(partial, counted)

    monkeypatch.setattr(LocalPartial, "keep", slow)
    async with half_sent(api, url, DATA[:150_000]) as writer:
        writer.close()
        assert await offset(api, url) == 150_000
    assert (await send(api, url, 150_000, DATA[150_000:])).status_code == 204


async def test_what_was_cut_off_before_it_became_a_video_becomes_one_when_somebody_looks(lonely_api: Api) -> None:
    """The API was killed after the last byte: before the bytes were in place, or before the rows were there."""
    api = lonely_api
    for in_place, sends in ((False, False), (True, False), (True, True)):
        url = await begin(api)
        await send(api, url, 0, DATA[:-1])
        [row] = await api.rows("SELECT key FROM uploads WHERE finished_at IS NULL")
        (api.root / "partial" / row["key"]).write_bytes(DATA)
        if in_place:
            (api.root / "partial" / row["key"]).rename(api.root / row["key"])
        await api.change("UPDATE uploads SET offset_bytes = size_bytes WHERE finished_at IS NULL")
        asking = (send(api, url, len(DATA), b"") if sends else api.http.head(url, headers=TUS) for _ in range(3))
        looked = await asyncio.gather(*asking)
        assert {answer.headers["vlog-video-id"] for answer in looked} == {Path(row["key"]).stem}
        assert api.files()[row["key"]] == DATA
    assert len(await api.rows("SELECT id FROM videos")) == 3


async def test_who_looks_while_the_last_piece_becomes_a_video_takes_nothing_from_it(lonely_api: Api) -> None:
    """Bytes are in place, rows are not: Postgres is slow. A client that lost the line looks, and is as far."""
    api, url = lonely_api, await begin(lonely_api)
    async with api.database.write() as slow:
        await slow.execute(text("LOCK TABLE videos IN EXCLUSIVE MODE"))  # may be read
        last = asyncio.create_task(send(api, url, 0, DATA))

        async def in_place() -> bool:
            return any(name.startswith("uploads/") for name in api.files())

        await eventually(in_place, within=5, every=0.02)
        look = asyncio.create_task(api.http.head(url, headers=TUS))
        await asyncio.sleep(receiving.BUSY_S + 0.4)  # for so long it waits for the other one; then it looks for itself
    answers = [await last, await look]
    [video] = await api.rows("SELECT id FROM videos")
    assert {answer.headers.get("vlog-video-id") for answer in answers} == {str(video["id"])}
    assert api.files() == {f"uploads/{video['id']}": DATA}


async def test_a_beginning_whose_answer_was_lost_is_found_by_its_key(lonely_api: Api) -> None:
    headers = TUS | {"Upload-Length": str(len(DATA)), "Idempotency-Key": "film-1", "Upload-Metadata": "x"}
    begun = [await lonely_api.http.post("/api/uploads", headers=headers)]
    await send(lonely_api, begun[0].headers["location"], 0, DATA[:1000])
    begun.append(await lonely_api.http.post("/api/uploads", content=DATA, headers=headers | PIECE))
    assert [answer.status_code for answer in begun] == [201, 201]
    assert begun[0].headers["location"] == begun[1].headers["location"]
    assert [answer.headers["upload-offset"] for answer in begun] == ["0", "1000"]
    assert begun[1].headers["idempotent-replayed"] == "true"
    assert len(await lonely_api.rows("SELECT id FROM uploads")) == 1
    another = headers | {"Upload-Length": "5"}
    assert says(await lonely_api.http.post("/api/uploads", headers=another)) == (409, "IDEMPOTENCY_KEY_USED")
    both = [
        lonely_api.http.post("/api/uploads", content=DATA, headers=headers | PIECE | {"Idempotency-Key": "film-2"})
        for _ in range(2)
    ]
    assert len({answer.headers["location"] for answer in await asyncio.gather(*both)}) == 1
    assert len(await lonely_api.rows("SELECT id FROM videos")) == 1


async def test_a_beginning_that_was_cut_off_in_its_first_bytes_is_asked_for_once_more(
    lonely_api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody was told its address, so it is dropped; who repeats it meanwhile must not get the address of nothing."""
    api, really = lonely_api, Receiving.drop
    headers = TUS | PIECE | {"Upload-Length": str(len(DATA)), "Idempotency-Key": "film-1"}
    dropping = asyncio.Event()

    async def slow(receiving: Receiving, upload_id: str) -> None:
        dropping.set()
        await asyncio.sleep(0.3)
        await really(receiving, upload_id)

    monkeypatch.setattr(Receiving, "drop", slow)
    wrong = {"Upload-Checksum": "sha1 " + b64(hashlib.sha1(b"?").digest())}
    first = asyncio.create_task(api.http.post("/api/uploads", content=DATA, headers=headers | wrong))
    await dropping.wait()
    again = await api.http.post("/api/uploads", content=DATA, headers=headers)
    assert says(again) == (503, "UPLOAD_INTERRUPTED") and says(await first)[0] == 460
    assert (await api.http.post("/api/uploads", content=DATA, headers=headers)).headers["vlog-video-id"]
