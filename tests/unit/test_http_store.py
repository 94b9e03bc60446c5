"""A remote worker's storage over a line that breaks: what came is kept, what went is sent again, none is mixed up."""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from contracts.errors import ObjectMissing
from storage.cache import Cache
from storage.http import HttpStore
from storage.http_calls import ClaimGone, WorkerCalls
from storage.local import LocalStore

SOURCE = bytes(range(256)) * 16_384  # four megabytes
KEY = "uploads/1.mp4"


@dataclass
class Far:
    """An API far away, of which one source is known: its next answers may break off, or be others."""

    data: bytes = SOURCE
    etag: str = "one"
    breaks_after: list[int] = field(default_factory=list)  # bytes of the body, for the answers to come
    refuses: int = 0  # with this status, once it has broken off
    ranges: list[str] = field(default_factory=list)
    stored: list[bytes] = field(default_factory=list)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            said = {name.lower(): value for name, value in re.findall(r"^([\w-]+): (.*)\r$", head, re.MULTILINE)}
            if head.startswith("PUT"):
                await self._take(reader, writer, said)
            else:
                self._give(writer, said)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def _give(self, writer: asyncio.StreamWriter, said: dict[str, str]) -> None:
        self.ranges.append(said["range"])
        first, last = re.fullmatch(r"bytes=(\d+)-(\d*)", said["range"]).groups()  # type: ignore[union-attr]
        start, end = int(first), int(last or len(self.data) - 1) + 1
        if self.refuses and start:
            writer.write(f"HTTP/1.1 {self.refuses} No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
            return
        same = said.get("if-range", f'"{self.etag}"') == f'"{self.etag}"'
        body = self.data[start:end] if same else self.data
        lines = [f"HTTP/1.1 {206 if same else 200} OK", f"Content-Length: {len(body)}", f'ETag: "{self.etag}"']
        lines += [f"Content-Range: bytes {start}-{end - 1}/{len(self.data)}"] if same else []
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
    far = Far(breaks_after=[2_500_000])
    async with storing(far, tmp_path) as store:
        fetching = asyncio.create_task(store.local_file(KEY).__aenter__())
        while len(far.ranges) < 2:
            await asyncio.sleep(0.01)
        far.data, far.etag = SOURCE[::-1], "two"
        with pytest.raises(ObjectMissing):
            await fetching
        async with store.local_file(KEY) as path:
            assert path.read_bytes() == SOURCE[::-1]


async def test_a_claim_that_is_gone_ends_a_download(tmp_path: Path) -> None:
    far = Far(breaks_after=[2_500_000], refuses=409)
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
