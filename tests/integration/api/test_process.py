"""`python -m api` as a process: it starts, stays small, and stops when told."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import httpx
import pytest

from api import __main__ as entry
from runtime.settings import Settings
from tests.integration.api.running import NOWHERE, free_port

ROOT = Path(__file__).parents[3]
MB = 1 << 20


@contextmanager
def process(database_url: str, home: Path, **settings: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    port = free_port()
    clean = {name: value for name, value in os.environ.items() if not name.startswith("VLOG_")}
    named = {
        "VLOG_HOME": str(home),
        "VLOG_PORT": str(port),
        "VLOG_DATABASE_URL": database_url,
        "VLOG_TEMPORAL_ADDRESS": NOWHERE,
        "VLOG_STORAGE_URL": (home / "storage").as_uri(),
    }
    home.mkdir(exist_ok=True)
    with (home / "output").open("wb") as output:
        running = subprocess.Popen(
            [sys.executable, "-m", "api"], cwd=ROOT, env=clean | named | settings, stdout=output, stderr=output
        )
    try:
        deadline = time.monotonic() + 30
        while True:
            try:
                httpx.get(f"http://127.0.0.1:{port}/health", timeout=1, trust_env=False)
                break
            except httpx.HTTPError:
                assert running.poll() is None and time.monotonic() < deadline, (home / "output").read_text()
                time.sleep(0.05)
        yield running, f"http://127.0.0.1:{port}"
    finally:
        running.kill()
        running.wait(10)


def peak_mb(pid: int) -> float:
    """Read the most memory a process has ever held."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    [peak] = [line for line in lines if line.startswith("VmHWM:")]
    return int(peak.split()[1]) / 1024


async def test_an_api_that_starts_before_its_disk_is_mounted_waits_for_it(database_url: str, tmp_path: Path) -> None:
    home, disk = tmp_path / "home", tmp_path / "disk"
    film = b"\x00\x00\x00\x18ftypisom" + bytes(1000)

    async def upload(url: str) -> httpx.Response:
        async with httpx.AsyncClient(base_url=url, trust_env=False) as http:
            return await http.put("/api/videos", params={"filename": "film.mp4"}, content=film)

    with process(database_url, home) as (_, url):
        assert (await upload(url)).status_code == 201
    (home / "storage").rename(disk)
    (home / "storage").mkdir()  # what lies below the mount
    with process(database_url, home) as (_, url):
        refused = await upload(url)
        assert (refused.status_code, refused.json()["error"]) == (503, "STORAGE_UNAVAILABLE")
        assert list((home / "storage").iterdir()) == []
        (home / "storage").rmdir()
        disk.rename(home / "storage")
        assert (await upload(url)).status_code == 201
    assert len(list((home / "storage" / "uploads").iterdir())) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_memory_stays_flat_while_200_mb_arrive(database_url: str, tmp_path: Path) -> None:
    block = os.urandom(MB)

    async def body(blocks: int) -> AsyncIterator[bytes]:
        for _ in range(blocks):
            yield block

    async def form(blocks: int) -> AsyncIterator[bytes]:
        yield b'--X\r\nContent-Disposition: form-data; name="file"; filename="big.mp4"\r\n\r\n'
        async for chunk in body(blocks):
            yield chunk
        yield b"\r\n--X--\r\n"

    with process(database_url, tmp_path / "home") as (running, url):
        async with httpx.AsyncClient(base_url=url, timeout=60, trust_env=False) as http:
            assert (await http.put("/api/videos", content=b"warm up")).status_code == 201
            before = peak_mb(running.pid)
            raw = await http.put("/api/videos?filename=big.mp4", content=body(200))
            kind = {"Content-Type": "multipart/form-data; boundary=X"}
            multipart = await http.post("/api/videos", content=form(60), headers=kind)
        for answer, size_mb in ((raw, 200), (multipart, 60)):
            assert answer.status_code == 201, answer.text
            stored = tmp_path / "home/storage/uploads" / f"{answer.json()['video_id']}.mp4"
            assert stored.stat().st_size == size_mb * MB
            stored.unlink()
        after = peak_mb(running.pid)
        print(f"{before:.0f} MB before, {after:.0f} MB at most")
        assert after - before < 30, f"{before:.0f} MB before, {after:.0f} MB at most"


async def test_sigterm_ends_it_soon_and_well_even_in_the_middle_of_an_upload(database_url: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    with process(database_url, home) as (running, url):
        _, writer = await asyncio.open_connection("127.0.0.1", int(url.rsplit(":", 1)[1]))
        writer.write(
            b"PUT /api/videos HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n" + os.urandom(2 * MB)
        )
        await writer.drain()
        await asyncio.sleep(0.5)
        started = time.monotonic()
        running.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(running.wait, 10) == 0, (home / "output").read_text()
        assert time.monotonic() - started < 6
        writer.close()
        assert [p for p in (home / "storage").rglob("*") if p.is_file()] == []


async def test_a_port_that_was_asked_for_and_is_taken_is_a_clear_error(database_url: str, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        clean = {name: value for name, value in os.environ.items() if not name.startswith("VLOG_")}
        named = {"VLOG_HOME": str(tmp_path), "VLOG_PORT": port, "VLOG_DATABASE_URL": database_url}
        done = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-m", "api"],
            cwd=ROOT,
            env=clean | named | {"VLOG_TEMPORAL_ADDRESS": NOWHERE},
            capture_output=True,
            text=True,
            timeout=30,
        )
    assert done.returncode == 1
    assert f"Port {port}" in done.stdout + done.stderr


async def test_apis_that_are_given_no_key_seal_with_the_same_one_over_restarts(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Enough(Exception):
        pass

    def stop(*_: object, sealing_key: str, **__: object) -> NoReturn:
        raise Enough(sealing_key)

    monkeypatch.setattr(entry, "create_app", stop)  # all that comes before it is real

    async def started(**given: Any) -> str:
        here: dict[str, Any] = {"home": tmp_path, "database_url": database_url, "temporal_address": NOWHERE}
        with pytest.raises(Enough) as found:
            await entry.serve(Settings(**here, storage_url=(tmp_path / "storage").as_uri(), **given))
        return str(found.value)

    first, *others = await asyncio.gather(*(started() for _ in range(4)))
    assert others == [first] * 3 and len(first) >= 43  # 256 bits
    assert await started() == first
    # Who wants it out of the database says another.
    assert await started(sealing_key="sixteen letters and more") == "sixteen letters and more"


async def test_it_does_not_listen_to_strangers_without_a_secret(tmp_path: Path) -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("VLOG_")}
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "api"],
        cwd=ROOT,
        env=clean | {"VLOG_HOME": str(tmp_path), "VLOG_HOST": "0.0.0.0"},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 1
    assert "VLOG_ADMIN_SECRET" in done.stderr
