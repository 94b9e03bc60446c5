"""Two machines that take pieces of one upload at a time, as when a line breaks and the client comes back elsewhere."""

import asyncio
import random
from pathlib import Path

import pytest

import storage.s3_partial
from storage.s3 import S3Store

KEY = "uploads/1.mp4"
DATA = random.Random(3).randbytes(700)


def elsewhere(bucket: S3Store, folder: Path) -> S3Store:
    """The same bucket, as a process of another machine sees it."""
    return S3Store(bucket.place, folder, patience_s=5)


async def tails(bucket: S3Store) -> set[str]:
    return {facts.key.rpartition("/")[2] for facts in await bucket.list(f"partial/{KEY}")}


async def test_who_comes_late_spares_what_another_is_about_to_count(bucket: S3Store, tmp_path: Path) -> None:
    late = elsewhere(bucket, tmp_path / "late")
    async with bucket.resume(KEY) as first, late.resume(KEY) as second:
        await first.go_on(0)
        await first.write(DATA[:300])
        assert await first.keep() == 300
        await first.write(DATA[300:500])
        assert await first.keep(300) == 500
        await second.go_on(300)  # it had asked how much is counted a moment before this was counted
        assert await tails(bucket) == {"0-300", "0-500"}
    async with late.resume(KEY) as third:
        await third.go_on(500)
        assert await tails(bucket) == {"0-500"}
        await third.write(DATA[500:])
        await third.commit()
    assert await bucket.read_bytes(KEY) == DATA
    assert await bucket.list("partial") == []


async def test_a_tail_stays_until_more_is_counted_however_long_that_takes(
    bucket: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage.s3_partial, "TAIL_S", 0.01)
    async with bucket.resume(KEY) as writer:
        await writer.go_on(0)
        for end, counted in ((100, 0), (200, 100), (300, 100)):
            await writer.write(DATA[end - 100 : end])
            assert await writer.keep(counted) == end
            await asyncio.sleep(0.02)  # now it is old
        assert await tails(bucket) == {"0-100", "0-200", "0-300"}
        await writer.write(DATA[300:400])
        await writer.keep(300)
        assert await tails(bucket) == {"0-300", "0-400"}
