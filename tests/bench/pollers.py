"""Two hundred machines that reach only the API and wait for work: what does their waiting cost the service?"""

import asyncio
import base64
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from contracts.gateway import MOST_WAIT_S
from tests.bench.bench import Bench
from tests.bench.figures import Verdict
from tests.bench.machine import moment
from tests.bench.page import table, verdict_lines
from tests.bench.processes import Process, tree
from tests.bench.sources import TINY
from tests.e2e.remote import serving_elsewhere
from tests.e2e.service import Service
from workers.remote import MOST_SILENT

POLLERS, BEAT_S = 200, 30.0
MEASURED_S = 150.0  # of each machine three times two questions, and five times that it lives
SHARE, LATE_S = 0.05, 1.0
VIDEOS = 5
ASKED = ("cpu", "probe")  # by every remote worker that was not told otherwise
# As a remote worker's client sends them, with its key.
HEAD = (
    "POST /api/worker/{what} HTTP/1.1\r\nHost: {host}\r\nAccept: */*\r\nAccept-Encoding: gzip, deflate\r\n"
    "Connection: keep-alive\r\nUser-Agent: python-httpx/0.28.1\r\nX-Worker-API-Key: {key}\r\n"
    "Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
)
SEAL_BYTES = 32  # before what a claim says in clear


@dataclass
class Heard:
    """What the waiting machines were answered."""

    empty: int = 0
    beats: int = 0
    odd: list[str] = field(default_factory=list)
    waits_s: list[float] = field(default_factory=list)  # from scheduled to here, of each step that came


@dataclass(frozen=True)
class Spent:
    """CPU seconds by who spent them."""

    api: float
    temporal: float
    postgres: float
    rest: float

    @property
    def whole(self) -> float:
        return self.api + self.temporal + self.postgres + self.rest

    def since(self, before: "Spent", seconds: float) -> "Spent":
        """Give shares of a core."""
        return Spent(*((now - then) / seconds for now, then in zip(_four(self), _four(before), strict=True)))


def pollers(bench: Bench) -> str:
    """Measure a service that nobody asks, then with everybody waiting, then how soon who waits has a step."""
    when = moment()
    count, measured_s = (20, 10.0) if bench.quick else (POLLERS, MEASURED_S)
    clip = bench.source(TINY, 2)
    settings = {"VLOG_WORKER_HEARTBEAT_INTERVAL": f"{BEAT_S:g}", "VLOG_STALE_JOB_CHECK_INTERVAL": "300"}
    folder = bench.folder / "pollers"
    folder.mkdir()
    with serving_elsewhere(folder, settings | {"VLOG_LOG_LEVEL": "warning"}) as service:
        alone, asked, heard = asyncio.run(_run(bench, service, clip, count, measured_s))
    more, late_s = asked.whole - alone.whole, max(heard.waits_s, default=float("inf"))
    verdicts = [
        Verdict(f"{count} waiting workers cost less than {SHARE:.0%} of a core", f"{more:.1%}", more < SHARE),
        Verdict(f"who waits has a step within {LATE_S:g} s", f"{late_s:.2f} s at most", late_s < LATE_S),
        Verdict("nobody is refused", f"{len(heard.odd)} odd answers {heard.odd[:1] or ''}".strip(), not heard.odd),
    ]
    intro = (
        f"{count} registered machines, each with two questions of {MOST_WAIT_S:g} s always open, one for encodes and"
        f" one for sources to look at, over connections that stay open, without TLS; while they wait the API notes"
        f" every {BEAT_S:g} s that they live, and they say so every {BEAT_S * MOST_SILENT:g} s;"
        f" {measured_s:g} s before they come and as long"
        f" with them ({heard.empty} empty answers, {heard.beats} beats). Shares of one core, by `/proc`. Then {VIDEOS}"
        f" videos, one by one: from a step's scheduling until a machine has read it, {len(heard.waits_s)} steps."
        f" {when}."
    )
    head = ["service", "API", "Temporal", "Postgres", "`vlog up`", "together"]
    rows = [[name, *(f"{share:.2%}" for share in (*_four(one), one.whole))] for name, one in _named(alone, asked)]
    return "\n\n".join(["## Workers that wait", intro, table(head, rows), verdict_lines(verdicts)])


async def _run(bench: Bench, service: Service, clip: Path, count: int, measured_s: float) -> tuple[Spent, Spent, Heard]:
    assert service.process is not None
    keys = await _registered(service.url, count)
    await asyncio.sleep(5)  # what starting has left to do
    alone = await _measure(service.process.pid, measured_s)
    bench.say(f"nobody asks: {alone.whole:.2%} of a core")
    heard = Heard()
    # Spread over one round: machines are not started in the same second.
    spread_s = min(MOST_WAIT_S, measured_s) / count
    silent_s = BEAT_S * MOST_SILENT
    waiting = [
        asyncio.create_task(each)
        for number, key in enumerate(keys)
        for each in (
            *(_ask(service.url, key, pool, number * spread_s, heard) for pool in ASKED),
            _beat(service.url, key, (number + 1) * silent_s / count, heard),
        )
    ]
    try:
        await asyncio.sleep(count * spread_s + 2)
        heard.empty = heard.beats = 0
        asked = await _measure(service.process.pid, measured_s)
        bench.say(f"{count} wait: {asked.whole:.2%} of a core; {heard.empty} empty answers, {heard.beats} beats")
        empty, beats = heard.empty, heard.beats
        for number in range(VIDEOS):
            created = await service.upload(clip, title=f"waited for {number}")
            await service.ended(created["video_id"], within=60)
        heard.empty, heard.beats = empty, beats
        bench.say(f"{len(heard.waits_s)} steps, at most {max(heard.waits_s, default=0):.2f} s from scheduled to here")
        return alone, asked, heard
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def _registered(url: str, count: int) -> list[str]:
    keys = []
    about = {"pools": list(ASKED), "slots": dict.fromkeys(ASKED, 1)}
    async with httpx.AsyncClient(base_url=url, timeout=30, trust_env=False) as http:
        for number in range(count):
            body = {"worker_name": f"poller-{number}", "capabilities": about}
            keys.append((await http.post("/api/worker/register", json=body)).json()["api_key"])
    return keys


async def _measure(root: int, seconds: float) -> Spent:
    before, began = _spent(root), time.monotonic()
    await asyncio.sleep(seconds)
    return _spent(root).since(before, time.monotonic() - began)


def _spent(root: int) -> Spent:
    seen = tree(root)
    return Spent(_sum(seen.api), _sum(seen.temporal), _sum(seen.postgres), _sum(seen.rest))


def _sum(processes: Iterable[Process]) -> float:
    return sum(process.own_s + process.buried_s for process in processes)


def _four(spent: Spent) -> tuple[float, float, float, float]:
    return spent.api, spent.temporal, spent.postgres, spent.rest


def _named(alone: Spent, asked: Spent) -> list[tuple[str, Spent]]:
    more = Spent(*(b - a for a, b in zip(_four(alone), _four(asked), strict=True)))
    return [("nobody asks", alone), ("all wait", asked), ("their cost", more)]


# --- a machine that waits -------------------------------------------------------------------------------------------


async def _ask(url: str, key: str, pool: str, after_s: float, heard: Heard) -> None:
    """Ask for work for ever, as workers/remote.py does; a step that comes is noted and given up."""
    await asyncio.sleep(after_s)
    line = await Line.open(url, key)
    while True:
        status, body = await line.post("claim", {"pool": pool, "wait_s": MOST_WAIT_S})
        if status == 204:
            heard.empty += 1
        elif status == 200:
            claimed = json.loads(body)
            said = json.loads(base64.urlsafe_b64decode(claimed["claim"])[SEAL_BYTES:])
            heard.waits_s.append(time.time() - datetime.fromisoformat(said["scheduled_at"]).timestamp())
            await line.post("progress", {"claim": claimed["claim"], "progress": None})
            await line.post("fail", {"claim": claimed["claim"], "code": "SOURCE_UNREADABLE"})
        else:
            heard.odd.append(f"{status} {body[:200]!r}")


async def _beat(url: str, key: str, after_s: float, heard: Heard) -> None:
    """Say every tenth time that a machine is there, as workers/remote.py does while its questions are open."""
    while True:
        line = await Line.open(url, key)
        status, body = await line.post("heartbeat", {"status": "idle"})
        line.close()
        heard.beats += 1
        if status != 200:
            heard.odd.append(f"{status} {body[:200]!r}")
        await asyncio.sleep(after_s)
        after_s = BEAT_S * MOST_SILENT


class Line:
    """One open connection. Four hundred of a real HTTP client would cost more than what they measure."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, key: str) -> None:
        self._reader, self._writer, self._host, self._key = reader, writer, host, key

    def close(self) -> None:
        self._writer.close()

    @classmethod
    async def open(cls, url: str, key: str) -> "Line":
        where = urlsplit(url)
        return cls(*await asyncio.open_connection(where.hostname, where.port), where.netloc, key)

    async def post(self, what: str, said: dict[str, Any]) -> tuple[int, bytes]:
        body = json.dumps(said, separators=(",", ":")).encode()
        head = HEAD.format(what=what, host=self._host, key=self._key, length=len(body))
        self._writer.write(head.encode() + body)
        answer = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = next((line for line in answer.split("\r\n") if line.startswith("content-length:")), ":0")
        return int(answer.split(" ")[1]), await self._reader.readexactly(int(length.partition(":")[2]))
