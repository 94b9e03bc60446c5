"""Pieces of one upload, sent to now this API and now that one, as a balancer does: beside a bucket none keeps any."""

import asyncio
import hashlib
import itertools
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from storage.s3 import S3Store
from storage.s3_multipart import Multipart
from storage.s3_place import s3_place
from storage.store import ObjectFacts
from tests.integration.api.running import Api, serving
from tests.integration.api.test_tus import TUS, b64, begin, offset, says, send
from tests.support.s3 import S3Server

DATA = b"\x00\x00\x00\x18ftypisom" + random.Random(2).randbytes(12_000_000)
CUTS = (0, 700_000, 6_000_000, 6_000_001, 11_500_000)


async def test_any_api_takes_the_next_piece(s3_server: S3Server, database_url: str, tmp_path: Path) -> None:
    place = s3_place(s3_server.new_url(), s3_server.environment)
    stores = [S3Store(place, tmp_path / name, patience_s=5) for name in ("one", "two")]
    async with (
        serving(database_url, tmp_path / "a/storage", store=stores[0]) as one,
        serving(database_url, tmp_path / "b/storage", store=stores[1]) as two,
    ):
        url = await begin(one, len(DATA))
        for n, (start, end) in enumerate(itertools.pairwise(CUTS)):
            api, other = (one, two) if n % 2 else (two, one)
            # Bytes that do not fit their checksum count nowhere, though parts of them may lie in the bucket.
            wrong = {"Upload-Checksum": "sha1 " + b64(hashlib.sha1(b"?").digest())}
            assert says(await send(other, url, start, bytes(end - start), **wrong))[0] == 460
            sent = await send(api, url, start, DATA[start:end])
            assert (sent.status_code, sent.headers["upload-offset"]) == (204, str(end)), sent.text
            assert await offset(other, url) == end
        sent = await send(one, url, CUTS[-1], DATA[CUTS[-1] :])
        assert sent.status_code == 204, sent.text
        [row] = await one.rows("SELECT id, source_key FROM videos")
        assert sent.headers["vlog-video-id"] == str(row["id"])
        assert await stores[1].read_bytes(row["source_key"]) == DATA
        assert await stores[0].list("partial") == []

        # One that is given up goes with its parts, whoever is told.
        url = await begin(one, len(DATA))
        await send(one, url, 0, DATA[:6_000_000])
        assert (await two.http.delete(url, headers=TUS)).status_code == 204
        assert await stores[0].list("partial") == []
    assert [path for store in ("one", "two") for path in (tmp_path / store).rglob("*") if path.is_file()] == []


@asynccontextmanager
async def two_apis(s3_server: S3Server, database_url: str, folder: Path) -> AsyncIterator[tuple[Api, Api, S3Store]]:
    """Two APIs of one bucket, and the second one's store."""
    place = s3_place(s3_server.new_url(), s3_server.environment)
    stores = [S3Store(place, folder / name, patience_s=5) for name in ("one", "two")]
    async with (
        serving(database_url, folder / "a/storage", store=stores[0]) as one,
        serving(database_url, folder / "b/storage", store=stores[1]) as two,
    ):
        yield one, two, stores[1]


async def test_an_upload_that_moved_on_while_another_api_looked_is_not_lost(
    s3_server: S3Server, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with two_apis(s3_server, database_url, tmp_path) as (one, two, store):
        url = await begin(one, 4000)
        await send(one, url, 0, DATA[:1000])
        really = store.list

        async def slow(prefix: str) -> list[ObjectFacts]:
            if prefix.startswith("partial/uploads/"):
                monkeypatch.setattr(store, "list", really)
                # The second of them takes away what the first went on behind.
                for at in (1000, 2000):
                    assert (await send(one, url, at, DATA[at : at + 1000])).status_code == 204
            return await really(prefix)

        monkeypatch.setattr(store, "list", slow)
        assert says(await send(two, url, 1000, DATA[1000:2000])) == (503, "UPLOAD_INTERRUPTED")
        assert await offset(two, url) == 3000
        assert (await send(two, url, 3000, DATA[3000:4000])).status_code == 204
        [row] = await one.rows("SELECT source_key FROM videos")
        assert await store.read_bytes(row["source_key"]) == DATA[:4000]


async def test_who_looks_while_another_api_joins_the_parts_finds_the_video(
    s3_server: S3Server, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_the_end, looked, joined = asyncio.Event(), asyncio.Event(), asyncio.Event()
    really_complete, size = Multipart.complete, 6_000_000
    async with two_apis(s3_server, database_url, tmp_path) as (one, two, store):
        really_stat = store.stat

        async def complete(calls: Multipart, *about: Any, **more: Any) -> bool:
            at_the_end.set()
            await looked.wait()
            done = await really_complete(calls, *about, **more)
            joined.set()
            return done

        async def stat(key: str) -> ObjectFacts | None:
            found = await really_stat(key)
            monkeypatch.setattr(store, "stat", really_stat)
            looked.set()
            await joined.wait()
            return found  # nothing was there yet

        monkeypatch.setattr(Multipart, "complete", complete)
        url = await begin(one, size)
        sending = asyncio.create_task(send(one, url, 0, DATA[:size]))
        await at_the_end.wait()
        monkeypatch.setattr(store, "stat", stat)
        seen, sent = await two.http.head(url, headers=TUS), await sending
        assert (seen.status_code, sent.status_code) == (200, 204)
        [row] = await one.rows("SELECT id, source_key FROM videos")
        assert seen.headers["vlog-video-id"] == sent.headers["vlog-video-id"] == str(row["id"])
        assert await store.read_bytes(row["source_key"]) == DATA[:size]
