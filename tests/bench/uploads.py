"""A large file by tus and by a plain PUT, in turns: what do resumable uploads cost in speed and memory?"""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx

from mirror.migrate import migrate
from tests.bench.bench import Bench
from tests.bench.figures import Verdict, spread
from tests.bench.machine import moment
from tests.bench.page import table, verdict_lines
from tests.integration.api.test_process import MB, peak_mb, process
from tests.support.postgres import PostgresServer

SIZE_MB = 2000
PIECE_MB = 50  # of a client that sends pieces; the other sends all in one
SHARE, GROWTH_MB = 0.80, 60.0
TUS = {"Tus-Resumable": "1.0.0", "Content-Type": "application/offset+octet-stream"}
WAYS = ("PUT", "tus, one piece", f"tus, {PIECE_MB} MB pieces")


def tus(bench: Bench) -> str:
    """Send the same bytes in three ways to one API process, round after round."""
    when = moment()
    size_mb, rounds = (100, 1) if bench.quick else (SIZE_MB, bench.rounds)
    server = PostgresServer(bench.folder)
    server.create()
    server.start()
    try:
        asyncio.run(migrate(server.url()))
        with process(server.url(), bench.folder / "home") as (api, url):
            storage = bench.folder / "home" / "storage" / "uploads"
            asyncio.run(_round(url, 10, storage))
            before_mb = peak_mb(api.pid)
            taken = [asyncio.run(_round(url, size_mb, storage)) for _ in range(rounds)]
            grown_mb = peak_mb(api.pid) - before_mb
    finally:
        server.stop()
    rates = {way: spread([size_mb / each[way] for each in taken]) for way in WAYS}
    shares = {way: spread([each["PUT"] / each[way] for each in taken]) for way in WAYS[1:]}
    for way in WAYS:
        bench.say(f"{way}: {rates[way].median:.0f} MB/s")
    verdicts = [
        *(
            Verdict(f"{way}: at least {SHARE:.0%} of a PUT", f"{share.median:.0%}", share.median >= SHARE)
            for way, share in shares.items()
        ),
        Verdict(
            f"API memory grows by less than {GROWTH_MB:g} MB through all of them",
            f"{grown_mb:.0f} MB",
            grown_mb < GROWTH_MB,
        ),
    ]
    intro = (
        f"{size_mb} MB over loopback in each of three ways, {rounds} rounds, client and API on this machine; from the"
        f" first byte until the answer says that the video is there, its bytes flushed to the disk. {when}."
    )
    rows = [[way, f"{rates[way].median:.0f}", f"{rates[way].least:.0f}–{rates[way].most:.0f}"] for way in WAYS]
    return "\n\n".join(
        ["## Resumable uploads", intro, table(["way", "MB/s, median", "least–most"], rows), verdict_lines(verdicts)]
    )


async def _round(url: str, size_mb: int, storage: Path) -> dict[str, float]:
    """Take the time of each way; what arrived is removed, and the disk is quiet, before the next."""
    block, taken = os.urandom(MB), dict[str, float]()

    async def body(blocks: int) -> AsyncIterator[bytes]:
        for _ in range(blocks):
            yield block

    async with httpx.AsyncClient(base_url=url, timeout=900, trust_env=False) as http:
        for way, piece_mb in zip(WAYS, (0, size_mb, PIECE_MB), strict=True):
            began = time.monotonic()
            if not piece_mb:
                answer = await http.put("/api/videos", content=body(size_mb))
                assert answer.status_code == 201, answer.text
            else:
                begun = await http.post("/api/uploads", headers=TUS | {"Upload-Length": str(size_mb * MB)})
                answer = begun
                for at in range(0, size_mb, piece_mb):
                    blocks = min(piece_mb, size_mb - at)
                    headers = TUS | {"Upload-Offset": str(at * MB)}
                    answer = await http.patch(begun.headers["location"], content=body(blocks), headers=headers)
                    assert answer.status_code == 204, answer.text
                assert "vlog-video-id" in answer.headers
            taken[way] = time.monotonic() - began
            for file in storage.iterdir():
                file.unlink()
            await asyncio.to_thread(os.sync)
    return taken
