"""A remote worker's storage over a line that breaks: what came is kept, what went is sent again, none is mixed up."""

import asyncio
import hashlib
import random
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from contracts.errors import ObjectMissing, StorageUnavailable
from storage import http_calls
from storage.cache import Cache
from storage.http import HttpStore
from storage.http_calls import ClaimGone, WorkerCalls
from storage.local import LocalStore
from tests.support.odd_answers import ODD, Said, ours, refusal

SOURCE = random.Random(7).randbytes(4 << 20)  # no part of it is like another
KEY = "uploads/1.mp4"
WHEN = "2026-11-17T12:00:00Z"


@pytest.fixture(autouse=True)
def in_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_calls, "FIRST_WAIT_S", 0.01)
    monkeypatch.setattr(http_calls, "LONGEST_WAIT_S", 0.05)


@dataclass
class Far:
    """An API far away, of which one source is known: its next answers may break off, or be others."""

    data: bytes = SOURCE
    etag: str = "one"
    breaks_after: list[int] = field(default_factory=list)  # bytes of the body, for the answers to come
    refuses: Said | None = None  # once it has broken off
    odd: list[Said] = field(default_factory=list)  # what somebody else says first, in its place
    forgets_ranges: bool = False
    ends_cleanly: bool = False  # where it breaks off, as if that were all
    tags: int = 1  # of the same bytes, in turn: one for each API
    ranges: list[str] = field(default_factory=list)
    stored: list[bytes] = field(default_factory=list)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            said = {name.lower(): value for name, value in re.findall(r"^([\w-]+): (.*)\r$", head, re.MULTILINE)}
            if self.odd:
                writer.write(self.odd.pop(0).raw())
            elif head.startswith("PUT"):
                await self._take(reader, writer, said)
            elif head.startswith("DELETE"):
                writer.write(Said(204, b"").raw())
            elif head.startswith("GET /api/worker/output/videos/ "):
                writer.write(ours(items=[{"key": KEY, "size_bytes": 1, "modified_at": WHEN, "etag": "x"}]).raw())
            else:
                self._give(writer, said)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def _give(self, writer: asyncio.StreamWriter, said: dict[str, str]) -> None:
        asked = said.get("range", "bytes=0-")
        self.ranges.append(asked)
        first, last = re.fullmatch(r"bytes=(\d+)-(\d*)", asked).groups()  # type: ignore[union-attr]
        start, end = int(first), int(last or len(self.data) - 1) + 1
        if self.refuses and start:
            writer.write(self.refuses.raw())
            return
        etag = f'"{self.etag}{len(self.ranges) % self.tags}"'
        same = said.get("if-range", etag) == etag and "range" in said and not self.forgets_ranges
        body = self.data[start:end] if same else self.data
        lines = [f"HTTP/1.1 {206 if same else 200} OK", f"ETag: {etag}", "Content-Type: application/octet-stream"]
        lines += [f"Content-Range: bytes {start}-{end - 1}/{len(self.data)}"] if same else []
        lines += [f"Content-Length: {len(body)}"] if not same or not self.ends_cleanly else []
        whole = len(body) == 1 or not self.breaks_after
        writer.write(("\r\n".join([*lines, "Connection: close"]) + "\r\n\r\n").encode())
        writer.write(body if whole else body[: self.breaks_after.pop(0)])

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, said: dict[str, str]) -> None:
        if self.breaks_after:
            await reader.readexactly(self.breaks_after.pop(0))
            writer.transport.abort()
            return
        self.stored.append(await reader.readexactly(int(said["content-length"])))
        assert said["x-content-sha256"] == hashlib.sha256(self.stored[-1]).hexdigest()
        body = '{"key": "k", "created": true}'
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode())


@asynccontextmanager
async def storing(far: Far, home: Path) -> AsyncIterator[HttpStore]:
    server = await asyncio.start_server(far.answer, "127.0.0.1", 0)
    calls = WorkerCalls(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", "key")
    cache = Cache(home / "cache", limit_bytes=1 << 30, reserve_bytes=0)
    try:
        yield HttpStore(calls, "claim", LocalStore(home / "work"), cache)
    finally:
        await calls.aclose()
        server.close()
        await server.wait_closed()


async def test_a_download_that_breaks_off_goes_on_where_it_broke_and_is_made_once(tmp_path: Path) -> None:
    far = Far(breaks_after=[2_500_000, 0, 1_000_000])
    async with storing(far, tmp_path) as store:
        for _ in range(2):
            async with store.local_file(KEY) as path:
                assert path.read_bytes() == SOURCE
    look, first, *again, last = far.ranges
    assert (look, first, last) == ("bytes=0-0", "bytes=0-", "bytes=0-0")
    # What had come of a megabyte that did not come whole comes again.
    starts = [int(each.removeprefix("bytes=").removesuffix("-")) for each in again]
    assert starts == sorted(starts) and 1_500_000 <= starts[0] <= 2_500_000 and len(starts) == 3


async def test_another_file_under_the_same_name_is_never_joined_to_the_first(tmp_path: Path) -> None:
    """It is fetched from its start, instead: no step fails for it."""
    far = Far(breaks_after=[2_500_000])
    async with storing(far, tmp_path) as store:
        fetching = asyncio.create_task(store.local_file(KEY).__aenter__())
        while len(far.ranges) < 2:
            await asyncio.sleep(0.001)
        far.data, far.etag = SOURCE[::-1], "two"
        assert (await fetching).read_bytes() == SOURCE[::-1]


async def test_apis_that_have_tags_of_their_own_for_the_same_file_give_it_all_the_same(tmp_path: Path) -> None:
    async with storing(Far(tags=3, breaks_after=[9, 9, 2_500_000]), tmp_path) as store, store.local_file(KEY) as path:
        assert path.read_bytes() == SOURCE


async def test_a_file_that_is_another_one_each_time_is_tried_again_later(tmp_path: Path) -> None:
    async with storing(Far(tags=1000), tmp_path) as store:
        with pytest.raises(StorageUnavailable):
            async with store.local_file(KEY):
                pass


async def test_a_source_is_gone_only_when_the_api_says_so(tmp_path: Path) -> None:
    far = Far(odd=[Said(404), Said(200), refusal(404, "OBJECT_MISSING")])
    async with storing(far, tmp_path) as store:
        with pytest.raises(ObjectMissing):
            async with store.local_file(KEY):
                pass
    assert not far.odd and not far.ranges


async def test_a_proxy_that_forgets_ranges_sends_what_is_there_already_in_vain_and_no_more(tmp_path: Path) -> None:
    far = Far(forgets_ranges=True, breaks_after=[65_536, 2_500_000, 3_000_000])  # the look is not read to its end
    async with storing(far, tmp_path) as store, store.local_file(KEY) as path:
        assert path.read_bytes() == SOURCE


async def test_an_answer_that_ends_too_soon_as_if_it_were_whole_goes_on_where_it_ended(tmp_path: Path) -> None:
    far = Far(ends_cleanly=True, breaks_after=[2_500_000, 1_000_000])
    async with storing(far, tmp_path) as store, store.local_file(KEY) as path:
        assert path.read_bytes() == SOURCE


@pytest.mark.parametrize("call", ["local_file", "put", "list", "stat", "read", "delete"])
async def test_whatever_a_proxy_says_in_between_costs_a_step_nothing(tmp_path: Path, call: str) -> None:
    far = Far(odd=[said for said in ODD if call != "delete" or said.status != 204])
    async with storing(far, tmp_path) as store:
        match call:
            case "local_file":
                async with store.local_file(KEY) as path:
                    far.odd = list(ODD)  # the second time it is looked at only
                    async with store.local_file(KEY) as again:
                        assert path.read_bytes() == again.read_bytes() == SOURCE
            case "put":
                assert await store.put_bytes("videos/x", b"x")
                assert far.stored == [b"x"]
            case "list":
                assert [facts.key for facts in await store.list("videos/")] == [KEY]
            case "stat":
                facts = await store.stat("videos/x")
                assert facts is not None and facts.size_bytes == len(SOURCE)
            case "read":
                assert await store.read_bytes("videos/x") == SOURCE
            case "delete":
                await store.delete("videos/x")
    assert not far.odd


async def test_what_comes_in_the_middle_of_a_download_costs_it_nothing(tmp_path: Path) -> None:
    far = Far(breaks_after=[2_500_000])
    async with storing(far, tmp_path) as store:
        fetching = asyncio.create_task(store.local_file(KEY).__aenter__())
        while len(far.ranges) < 2:
            await asyncio.sleep(0.001)
        far.odd = list(ODD)
        assert (await fetching).read_bytes() == SOURCE
    assert not far.odd and far.ranges[:2] == ["bytes=0-0", "bytes=0-"] and len(far.ranges) == 3


async def test_a_claim_that_is_gone_ends_a_download(tmp_path: Path) -> None:
    far = Far(breaks_after=[2_500_000], refuses=refusal(409, "CLAIM_EXPIRED"))
    async with storing(far, tmp_path) as store:
        with pytest.raises(ClaimGone):
            async with store.local_file(KEY):
                pass


async def test_a_segment_that_did_not_arrive_whole_is_sent_again(tmp_path: Path) -> None:
    segment = tmp_path / "seg_00000.m4s"
    segment.write_bytes(SOURCE)
    far = Far(breaks_after=[1_000_000, 10])
    async with storing(far, tmp_path) as store:
        assert await store.put_file("videos/a/r1/720p/seg_00000.m4s", segment, create_only=True)
    assert far.stored == [SOURCE]
