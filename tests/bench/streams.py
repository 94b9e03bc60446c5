"""Five hundred browsers that watch, a thousand things that happen: does everybody hear of all, and how soon?"""

import asyncio
import os
import re
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from sqlalchemy import text

from mirror import writes
from mirror.events import TOPIC_PROGRESS
from mirror.migrate import migrate
from mirror.sessions import Database
from tests.bench.bench import Bench
from tests.bench.figures import Verdict
from tests.bench.machine import moment
from tests.bench.page import table, verdict_lines
from tests.integration.api.test_process import process
from tests.integration.mirror import story
from tests.support.postgres import PostgresServer

STREAMS, EVENTS = 500, 1000
OTHERS, WATCHED = 100, 9  # videos beside the one that everybody watches, and how many of them each stream does
HOT_EVERY = 20
PER_SECOND = 50.0
LATE_MS, GROWTH_MB = 250.0, 100.0
LAST_S = 30.0  # to wait for what has not come

_PROGRESS = re.compile(rb"event: transcode_progress:(\d+)\ndata: [^\n]*?\"percent\":(\d+)")


@dataclass
class Log:
    """When each state of each video was written, and when it arrived at how many."""

    written: dict[tuple[int, int], float] = field(default_factory=dict)
    waits_s: dict[tuple[int, int], list[float]] = field(default_factory=lambda: defaultdict(list))

    def arrived(self, state: tuple[int, int]) -> None:
        if state in self.written:
            self.waits_s[state].append(time.monotonic() - self.written[state])


def sse(bench: Bench) -> str:
    """Open streams on one API process, change videos at a steady pace, and count what each stream is told."""
    when = moment()
    streams, events = (20, 40) if bench.quick else (STREAMS, EVENTS)
    server = PostgresServer(bench.folder)
    server.create()
    server.start()
    try:
        asyncio.run(migrate(server.url()))
        with process(server.url(), bench.folder / "home") as (api, url):
            log, expected, before_mb, peak_mb, cpu_s = asyncio.run(_run(server.url(), url, api.pid, streams, events))
    finally:
        server.stop()
    waits = sorted(wait for each in log.waits_s.values() for wait in each)
    lost = expected - len(waits)
    p50, p99 = (1000 * waits[min(len(waits) - 1, round(share * len(waits)))] for share in (0.50, 0.99))
    bench.say(f"{len(waits)} of {expected} delivered, p99 {p99:.0f} ms, API {before_mb:.0f} → {peak_mb:.0f} MB")
    verdicts = [
        Verdict("every event is delivered to everybody who watches", f"{lost} of {expected} lost", lost == 0),
        Verdict(f"p99 under {LATE_MS:g} ms", f"{p99:.0f} ms", p99 < LATE_MS),
        Verdict(
            f"API memory grows by less than {GROWTH_MB:g} MB",
            f"{peak_mb - before_mb:.0f} MB",
            peak_mb - before_mb < GROWTH_MB,
        ),
    ]
    intro = (
        f"{streams} streams on one API process, each of {WATCHED + 1} videos; {events} committed changes,"
        f" {PER_SECOND:g} a second, every {HOT_EVERY}th of a video that all watch. Measured from before the"
        f" commit until the client has read it; client, API and Postgres share this machine. {when}."
    )
    row = [
        str(len(waits)),
        f"{p50:.0f}",
        f"{p99:.0f}",
        f"{1000 * waits[-1]:.0f}",
        f"{cpu_s:.1f} of {events / PER_SECOND:.0f}",
    ]
    row.append(f"{before_mb:.0f} → {peak_mb:.0f}")
    head = ["deliveries", "p50 ms", "p99 ms", "longest ms", "API CPU s", "API MB, idle → peak"]
    return "\n\n".join(["## Event streams", intro, table(head, [row]), verdict_lines(verdicts)])


async def _run(
    database_url: str, url: str, pid: int, streams: int, events: int
) -> tuple[Log, int, float, float, float]:
    database, log = Database(database_url), Log()
    try:
        videos = [await story.planned(database) for _ in range(OTHERS + 1)]
        hot, others = videos[0], videos[1:]
        watched = [
            [hot.video_id, *(others[(number * WATCHED + place) % OTHERS].video_id for place in range(WATCHED))]
            for number in range(streams)
        ]
        before_mb = _memory_mb(pid, "VmRSS")
        begun = [asyncio.Event() for _ in range(streams)]
        readers = [asyncio.create_task(_read(url, ids, log, ready)) for ids, ready in zip(watched, begun, strict=True)]
        await asyncio.gather(*(ready.wait() for ready in begun))
        jobs = {video.video_id: video.job_id for video in videos}
        expected = 0
        percent: dict[int, int] = defaultdict(int)
        start, spent_s = time.monotonic(), _cpu_s(pid)
        for number in range(events):
            chosen = hot if number % HOT_EVERY == 0 else others[(number - number // HOT_EVERY) % OTHERS]
            await asyncio.sleep(max(0.0, start + number / PER_SECOND - time.monotonic()))
            percent[chosen.video_id] += 1
            state = (chosen.video_id, percent[chosen.video_id])
            log.written[state] = time.monotonic()
            await _change(database, jobs[chosen.video_id], *state)
            expected += sum(chosen.video_id in ids for ids in watched)
        deadline = time.monotonic() + LAST_S
        while sum(map(len, log.waits_s.values())) < expected and time.monotonic() < deadline:
            await asyncio.sleep(0.1)
        peak_mb, spent_s = _memory_mb(pid, "VmHWM"), _cpu_s(pid) - spent_s
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
        return log, expected, before_mb, peak_mb, spent_s
    finally:
        await database.close()


async def _change(database: Database, job_id: int, video_id: int, percent: int) -> None:
    async with database.write() as s:
        change = text("UPDATE transcoding_jobs SET progress_percent = :percent WHERE id = :id")
        await s.execute(change, {"percent": percent, "id": job_id})
        await writes.notify(s, TOPIC_PROGRESS, video_id)


async def _read(url: str, video_ids: Sequence[int], log: Log, begun: asyncio.Event) -> None:
    """Read as little as shows what came: five hundred real HTTP clients would cost more than what they measure."""
    where = urlsplit(url)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    try:
        ids = ",".join(map(str, video_ids))
        ask = f"GET /api/events/progress?video_ids={ids} HTTP/1.1\r\nHost: {where.netloc}\r\n\r\n"
        writer.write(ask.encode())
        left, first = b"", set[int]()
        while data := await reader.read(1 << 16):
            *whole, left = (left + data).split(b"\n\n")
            for frame in whole:
                if found := _PROGRESS.search(frame):
                    state = int(found[1]), int(found[2])
                    log.arrived(state)
                    first.add(state[0])
            if len(first) == len(video_ids):
                begun.set()
    finally:
        writer.close()


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory_mb(pid: int, name: str) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(f"{name}:")).split()[1]) / 1024
