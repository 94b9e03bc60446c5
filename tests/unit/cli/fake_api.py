"""A small API on loopback that says what a test tells it to: the command's own HTTP is real."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest


class FakeApi:
    def __init__(self) -> None:
        self.answers: dict[tuple[str, str], list[tuple[int, Any]]] = {}
        self.bodies: list[bytes] = []
        self.queries: list[dict[str, list[str]]] = []
        self.headers: list[dict[str, str]] = []
        self.url = ""

    def say(self, method: str, path: str, *bodies: Any, status: int = 200) -> None:
        """Answer each call with the next body; the last one is repeated."""
        self.answers[method, path] = [(status, body) for body in bodies]

    def take(self, method: str, path: str) -> tuple[int, Any]:
        waiting = self.answers.get((method, path))
        if not waiting:
            return 404, {"error": "NOT_FOUND", "detail": "There is nothing here."}
        return waiting.pop(0) if len(waiting) > 1 else waiting[0]


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeApi]:
    fake = FakeApi()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            parts = urlsplit(self.path)
            fake.bodies.append(self.rfile.read(int(self.headers.get("Content-Length", 0))))
            fake.queries.append(parse_qs(parts.query))
            fake.headers.append(dict(self.headers))
            status, body = fake.take(self.command, parts.path)
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_PUT = do_POST = do_DELETE = _answer

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    fake.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    monkeypatch.setenv("VLOG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("VLOG_API_URL", fake.url)
    yield fake
    server.shutdown()
    server.server_close()
    thread.join(5)


def video(**changes: Any) -> dict[str, Any]:
    return {
        "video_id": 7,
        "slug": "a-walk",
        "title": "A walk",
        "status": "ready",
        "error_code": None,
        "error_message": None,
        "duration": 20.0,
        "created_at": "2026-11-16T09:30:00Z",
        "job_id": 9,
        "qualities": [],
        "stream_url": "/videos/a-walk/master.m3u8",
        "dash_url": "/videos/a-walk/manifest.mpd",
        "a_field_of_tomorrow": 1,
    } | changes


def progress(status: str = "processing", percent: float = 0, done: int = 0, **changes: Any) -> dict[str, Any]:
    rung = {"segments_total": 4, "segments_completed": done, "percent": done * 25.0}
    return {
        "status": status,
        "step": "transcode",
        "percent": percent,
        "attempt": 1,
        "max_attempts": 3,
        "eta_seconds": None,
        "job_id": 9,
        "qualities": [
            {"quality": "1080p", "status": "skipped", "percent": 0, "segments_total": 4, "segments_completed": 0},
            {"quality": "720p", "status": "completed" if done == 4 else "in_progress"} | rung,
        ],
    } | changes
