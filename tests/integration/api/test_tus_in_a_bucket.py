"""Pieces of one upload, sent to now this API and now that one, as a balancer does: beside a bucket none keeps any."""

import hashlib
import itertools
import random
from pathlib import Path

from storage.s3 import S3Store
from storage.s3_place import s3_place
from tests.integration.api.running import serving
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
