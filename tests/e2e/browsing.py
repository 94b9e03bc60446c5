"""A real Chromium, and a page with real players that is served from another origin than the API."""

import functools
import http.server
import os
import shutil
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, async_playwright, expect

HERE = Path(__file__).parent
MODULES = HERE.parents[1] / "web" / "node_modules"

expect.set_options(timeout=20_000)  # milliseconds: a starved machine gets more, as with `eventually`

FLAGS = [
    "--no-sandbox",
    "--autoplay-policy=no-user-gesture-required",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
]


def chromium() -> str:
    """Find Debian's Chromium; missing is a skip on a laptop and a failure in CI."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found and (MODULES / "hls.js").is_dir():
        return found
    missing = "Chromium" if not found else "the players of web/package.json"
    if os.environ.get("CI"):
        pytest.fail(f"{missing} must be there in CI: make setup-dev installs it")
    pytest.skip(f"{missing} is not installed (make setup-dev)")


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def __init__(self, *args: Any, stream: Path | None = None, **options: Any) -> None:
        self._stream = stream
        super().__init__(*args, **options)

    def translate_path(self, path: str) -> str:
        clean = path.split("?", 1)[0].lstrip("/")
        if self._stream and clean.startswith("stream/"):
            return str(self._stream / clean.removeprefix("stream/"))
        if clean.startswith("modules/"):
            return str(MODULES / clean.removeprefix("modules/"))
        return str(HERE / "page" / clean)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def player_page(page: str = "player.html", stream: Path | None = None) -> Iterator[str]:
    """Serve a page with players, and below `/stream/` the folder of a published stream."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, stream=stream))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/{page}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@asynccontextmanager
async def open_page(url: str) -> AsyncIterator[Page]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        try:
            page = await browser.new_page()
            await page.goto(url)
            yield page
        finally:
            await browser.close()
