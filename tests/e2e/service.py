"""The whole service as a person starts it: `vlog up`, in a home of its own."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
import httpx

from storage.s3_place import s3_place
from tests.support.bucket_files import shown
from tests.support.s3 import shared_s3_server

ROOT = Path(__file__).parents[2]

# Small segments and a fast preset: the path is the same, the waiting is not.
QUICK = {
    "VLOG_SEGMENT_SECONDS": "2",
    "VLOG_PRESET": "ultrafast",
    "VLOG_STEP_HEARTBEAT_TIMEOUT_SECONDS": "5",
    "VLOG_DRAIN_SECONDS": "2",
    "VLOG_STALE_JOB_CHECK_INTERVAL": "30",  # housekeeping costs as much as a small video; who waits for it says so
}
OFTEN_KEPT = {"VLOG_STALE_JOB_CHECK_INTERVAL": "3"}


def storage_for_tests() -> str | None:
    """Name a bucket where TEST_STORAGE asks for one: `TEST_STORAGE=s3 pytest tests/e2e` runs the same tests on S3."""
    kind = os.environ.get("TEST_STORAGE") or "local"
    assert kind in ("local", "s3"), kind
    return shared_s3_server().new_url() if kind == "s3" else None


@dataclass
class Service:
    home: Path
    settings: dict[str, str] = field(default_factory=lambda: dict(QUICK))
    process: subprocess.Popen[bytes] | None = None
    bucket: str | None = field(default_factory=lambda: storage_for_tests())  # none: a folder in its home

    @property
    def environment(self) -> dict[str, str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("VLOG_")}
        if self.bucket:
            clean |= shared_s3_server().environment | {"VLOG_STORAGE_URL": self.bucket}
        return clean | {"VLOG_HOME": str(self.home)} | self.settings

    @property
    def run(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.home / "run.json").read_text())
        return found

    @property
    def url(self) -> str:
        return str(self.run["api_url"])

    @property
    def storage(self) -> Path:
        """Look into storage as into a folder, wherever it is."""
        if self.bucket:
            place = s3_place(self.bucket, shared_s3_server().environment)
            return shown(place, self.home.parent / "bucket", self.home / "work" / "scratch")
        return Path(str(self.run["storage_url"]).removeprefix("file://"))

    def vlog(self, *arguments: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        """Run the command as a person would, without a terminal."""
        return subprocess.run(
            [sys.executable, "-m", "cli", *arguments],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    def start(self, workers: int = 1) -> None:
        log = (self.home.parent / "up.log").open("ab")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "cli", "up", "--workers", str(workers)],
            cwd=ROOT,
            env=self.environment,
            stdout=log,
            stderr=log,
        )
        log.close()
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError, httpx.HTTPError, ValueError, KeyError):
                answer = httpx.get(f"{self.url}/api/health", timeout=2, verify=False)
                if answer.status_code == 200 and answer.json()["active_workers"] >= workers:
                    return
            if self.process.poll() is not None:
                break
            time.sleep(0.2)
        self.stop()
        raise AssertionError("the service did not start:\n" + (self.home.parent / "up.log").read_text()[-3000:])

    def stop(self) -> int:
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise

    def processes(self) -> list[str]:
        """Name every living process that belongs to this home."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                with contextlib.suppress(OSError):
                    words = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
                    if str(self.home).encode() in words:
                        found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:200])
        return found

    async def query(self, sql: str, *arguments: object) -> list[asyncpg.Record]:
        url = str(self.run["database_url"]).replace("+asyncpg", "")
        connection = await asyncpg.connect(url, timeout=5)
        try:
            return await connection.fetch(sql, *arguments)
        finally:
            await connection.close()

    async def upload(self, path: Path, **fields: str) -> dict[str, Any]:
        async with httpx.AsyncClient(timeout=60, verify=False) as http:
            with path.open("rb") as file:
                answer = await http.post(f"{self.url}/api/videos", files={"file": (path.name, file)}, data=fields)
        assert answer.status_code == 201, answer.text
        created: dict[str, Any] = answer.json()
        return created

    async def get(self, path: str) -> Any:
        async with httpx.AsyncClient(timeout=10, verify=False) as http:  # reading certificates would cost most of it
            answer = await http.get(self.url + path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def ended(self, video_id: int, *, within: float = 180) -> dict[str, Any]:
        """Wait until the video is ready or failed, and return it."""
        deadline = time.monotonic() + within
        while time.monotonic() < deadline:
            video: dict[str, Any] = await self.get(f"/api/videos/{video_id}")
            if video["status"] in ("ready", "failed"):
                return video
            await asyncio.sleep(0.3)
        raise AssertionError(f"video {video_id} did not end within {within} s: {video}")


@dataclass(frozen=True)
class ReadyVideo:
    """A video that went through the whole service once, shared by tests that only look."""

    answer: dict[str, Any]
    source: Path
    master: Path
    duration_s: float
    frames: int
    seen: tuple[tuple[str, int, str | None], ...]  # what the documented SQL showed while it ran
