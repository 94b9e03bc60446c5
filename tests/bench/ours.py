"""Our way: the whole service as a person starts it, and one video through it."""

import asyncio
import contextlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Self

import asyncpg
import httpx

from contracts.plan import Rung
from mirror.events import CHANNEL
from runtime.ladder import show_ladder
from tests.bench.figures import Cost
from tests.bench.processes import TICKS, Sampler, machine_ticks, tree
from tests.e2e.service import Service

_LOOK_S = 1.0
_SETTLE_S = 1.5
_SETTLE_WITHIN_S = 180.0


class DidNotEnd(Exception):
    """A video was not ready in time, or failed."""


@dataclass(frozen=True)
class Busy:
    """How long a video took, and what all cores together did meanwhile."""

    wall_s: float
    machine_s: float  # all there was to spend
    busy_s: float  # spent, whoever it was
    ours_s: Mapping[str, float]  # by those parts of the service

    @property
    def share(self) -> float:
        return self.busy_s / self.machine_s

    @property
    def foreign(self) -> float:
        """Tell the share that went to others, the kernel's own work for nobody in particular included."""
        return max(0.0, self.busy_s - sum(self.ours_s.values())) / self.machine_s


class Ours:
    """One running service. Use as a context manager: nothing of it outlives the block."""

    def __init__(
        self,
        folder: Path,
        preset: str,
        ladder: tuple[Rung, ...],
        *,
        settings: Mapping[str, str] | None = None,
        workers: int = 1,
    ) -> None:
        folder.mkdir(parents=True)
        own = {"VLOG_PRESET": preset, "VLOG_LADDER": show_ladder(ladder), "VLOG_LOG_LEVEL": "warning"}
        self.preset = preset
        self.service = Service(folder / "home", own | dict(settings or {}))
        self._workers = workers

    def __enter__(self) -> Self:
        try:
            self.service.start(self._workers)
            self._settle()
        except BaseException:
            if self.service.process is not None:
                self.service.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.service.stop()

    @property
    def _root(self) -> int:
        assert self.service.process is not None
        return self.service.process.pid

    def transcode(self, source: Path, *, within_s: float, look_every_s: float = 0.25) -> Cost:
        """Send a source and wait until it is ready; then until the machine is quiet again."""
        with Sampler(self._root, every_s=look_every_s) as peaks:
            before = tree(self._root)
            video = self.ready(source, within_s=within_s)
            at_ready = tree(self._root)
        cost = Cost(
            wall_s=(video["completed_at"] - video["created_at"]).total_seconds(),
            ffmpeg_cpu_s=at_ready.ffmpeg_cpu_s - before.ffmpeg_cpu_s,
            other_cpu_s=at_ready.other_cpu_s - before.other_cpu_s,
            size_bytes=media_bytes(self.service.storage / "videos" / video["slug"]),
            ffmpeg_mb=peaks.ffmpeg_mb,
            worker_mb=peaks.worker_mb,
            api_mb=peaks.api_mb,
        )
        self._settle()
        # What ended workers or an interrupted look would make of the difference: nothing that can be trusted.
        if min(cost.ffmpeg_cpu_s, cost.other_cpu_s) < 0:
            raise DidNotEnd("a part of the service was restarted while it was measured")
        return replace(cost, after_cpu_s=tree(self._root).ffmpeg_cpu_s - at_ready.ffmpeg_cpu_s)

    def ready(self, source: Path, *, within_s: float) -> dict[str, Any]:
        """Send a source and wait until it is ready; gives the video's row."""
        video = asyncio.run(self._until(source, "v.status IN ('ready', 'failed')", within_s))
        if video["status"] != "ready":
            raise DidNotEnd(f"the video failed: {video['error_code']}")
        return video

    def time_to_ready(self, source: Path, *, within_s: float) -> Busy:
        """Give the seconds from accepted to ready, and what the machine did meanwhile, for whom."""
        ticks, spent = machine_ticks(), tree(self._root).cpu_s
        video = self.ready(source, within_s=within_s)
        busy, all_of_it = (after - start for after, start in zip(machine_ticks(), ticks, strict=True))
        now = tree(self._root).cpu_s
        return Busy(
            wall_s=(video["completed_at"] - video["created_at"]).total_seconds(),
            machine_s=all_of_it / TICKS,
            busy_s=busy / TICKS,
            ours_s={name: now[name] - spent[name] for name in now},
        )

    def time_to_playable(self, source: Path, *, within_s: float) -> tuple[float, bool]:
        """Give the seconds from the first transcode step to playable, and whether it was still encoding then."""
        video = asyncio.run(
            self._until(source, "v.playable_at IS NOT NULL OR v.status IN ('ready', 'failed')", within_s)
        )
        playable: datetime | None = video["playable_at"]
        if playable is None or video["first_step_at"] is None:
            raise DidNotEnd(f"the video failed: {video['error_code']}")
        return (playable - video["first_step_at"]).total_seconds(), video["completed_at"] is None

    async def _until(self, source: Path, condition: str, within_s: float) -> dict[str, Any]:
        created = await self._upload(source, within_s)
        # Looked up when Postgres rings the bell: asking again and again would be a cost of what is measured.
        sql = (
            "SELECT v.*, j.id AS job_id, j.completed_at,"
            " (SELECT min(s.started_at) FROM job_steps s"
            "  WHERE s.job_id = j.id AND s.step = 'transcode') AS first_step_at"
            f" FROM videos v JOIN transcoding_jobs j ON j.video_id = v.id WHERE v.id = $1 AND ({condition})"
        )
        deadline = time.monotonic() + within_s
        connection = await asyncpg.connect(self.service.run["database_url"].replace("+asyncpg", ""), timeout=10)
        news = asyncio.Event()
        try:
            await connection.add_listener(CHANNEL, lambda *_: news.set())
            while time.monotonic() < deadline:
                news.clear()
                if row := await connection.fetchrow(sql, created["video_id"]):
                    return dict(row)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(news.wait(), _LOOK_S)
        finally:
            await connection.close(timeout=5)
        raise DidNotEnd(f"not within {within_s:.0f} s")

    async def _upload(self, source: Path, within_s: float) -> dict[str, Any]:
        async with httpx.AsyncClient(timeout=within_s, trust_env=False) as http:
            with source.open("rb") as file:
                answer = await http.post(f"{self.service.url}/api/videos", files={"file": (source.name, file)})
        answer.raise_for_status()
        created: dict[str, Any] = answer.json()
        return created

    def _settle(self) -> None:
        """Wait until no encoder runs: the next way must not pay for the storyboard of this one."""
        deadline = time.monotonic() + _SETTLE_WITHIN_S
        quiet_since = time.monotonic()
        while time.monotonic() < deadline:
            if tree(self._root).encoders:
                quiet_since = time.monotonic()
            elif time.monotonic() - quiet_since > _SETTLE_S:
                return
            time.sleep(0.2)
        raise DidNotEnd("the service kept encoding after the video was ready")


def media_bytes(folder: Path) -> int:
    """Add up the segments: pictures and playlists are beside the point."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.suffix in (".m4s", ".mp4"))
