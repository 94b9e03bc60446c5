"""tus as others speak it, and an API that is killed in the middle of it."""

import asyncio
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy import text

from mirror.sessions import Database
from tests.integration.api.running import Api
from tests.integration.api.test_process import ROOT, process
from tests.integration.api.test_tus import PIECE, TUS, offset
from tests.support.eventually import eventually
from tests.support.missing import missing

MB = 1 << 20


async def node(script: str, package: str, api: Api, file: Path) -> dict[str, Any]:
    """Run a client's script, and give what it prints."""
    if not shutil.which("node") or not (ROOT / "web/node_modules" / package).is_dir():
        missing(f"node, or {package} in web/node_modules")
    argv = ["node", str(ROOT / "tests/support" / script), f"{api.url}/api/uploads", str(file)]
    running = await asyncio.create_subprocess_exec(*argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = await asyncio.wait_for(running.communicate(), 120)
    assert running.returncode == 0, err.decode()
    told: dict[str, Any] = json.loads(out)
    return told


async def test_tus_js_client_aborts_and_goes_on(lonely_api: Api, tmp_path: Path) -> None:
    data = os.urandom(24 * MB)
    (tmp_path / "film.mp4").write_bytes(data)
    told = await node("tus_upload.mjs", "tus-js-client", lonely_api, tmp_path / "film.mp4")
    assert len(data) / 2 <= told["aborted_at"] and 0 < told["resumed_at"] <= len(data)
    assert lonely_api.files() == {f"uploads/{told['video_id']}.mp4": data}
    [video] = await lonely_api.rows("SELECT title, slug FROM videos")
    assert dict(video) == {"title": "Aus Node ü", "slug": "aus-node-u"}


async def test_uppy_pauses_and_goes_on(lonely_api: Api, tmp_path: Path) -> None:
    data = os.urandom(6 * MB + 12345)
    (tmp_path / "film.mov").write_bytes(data)
    told = await node("uppy_upload.mjs", "@uppy/tus", lonely_api, tmp_path / "film.mov")
    assert len(data) / 2 <= told["paused_at"] < len(data) and 0 < told["resumed_at"] < len(data)
    assert await offset(lonely_api, told["url"]) == len(data)
    [video] = await lonely_api.rows("SELECT id, title, source_filename FROM videos")
    assert (video["title"], video["source_filename"]) == ("Aus Uppy ü", "from Uppy.mov")
    assert lonely_api.files() == {f"uploads/{video['id']}.mov": data}


async def test_tuspy_sends_pieces_with_checksums(lonely_api: Api, tmp_path: Path) -> None:
    from tusclient.client import TusClient

    data = os.urandom(MB + 12345)
    (tmp_path / "film.mkv").write_bytes(data)

    def upload() -> str:
        client = TusClient(f"{lonely_api.url}/api/uploads/")
        uploader = client.uploader(
            str(tmp_path / "film.mkv"), chunk_size=256 << 10, upload_checksum=True, metadata={"filename": "film.mkv"}
        )
        uploader.upload_chunk()  # one piece, then a second program goes on where it stopped
        again = client.uploader(
            str(tmp_path / "film.mkv"), chunk_size=256 << 10, upload_checksum=True, url=uploader.url
        )
        assert again.offset == 256 << 10
        again.upload()
        return str(uploader.url)

    url = await asyncio.to_thread(upload)
    assert await offset(lonely_api, url) == len(data)
    [video] = await lonely_api.rows("SELECT id, slug FROM videos")
    assert video["slug"] == "film" and lonely_api.files() == {f"uploads/{video['id']}.mkv": data}


async def test_an_api_that_is_killed_half_way_has_what_it_said_it_has(database_url: str, tmp_path: Path) -> None:
    data, home = os.urandom(8 * MB), tmp_path / "home"
    database = Database(database_url)

    async def counted() -> int:
        async with database.read() as session:
            return int((await session.execute(text("SELECT offset_bytes FROM uploads"))).scalar_one())

    with process(database_url, home) as (running, base):
        begun = httpx.post(
            f"{base}/api/uploads", headers=TUS | {"Upload-Length": str(len(data))}, trust_env=False, timeout=30
        )
        url = begun.headers["location"]
        _, writer = await asyncio.open_connection("127.0.0.1", int(base.rsplit(":", 1)[1]))
        head = f"PATCH {url} HTTP/1.1\r\nHost: localhost\r\nTus-Resumable: 1.0.0\r\nUpload-Offset: 0\r\n"
        writer.write(f"{head}Content-Type: {PIECE['Content-Type']}\r\nContent-Length: {len(data)}\r\n\r\n".encode())
        sent = 0

        async def is_counted() -> bool:
            nonlocal sent
            if sent < 6 * MB:
                writer.write(data[sent : sent + MB // 4])
                await writer.drain()
                sent += MB // 4
            return await counted() > 0

        await eventually(is_counted, within=10, every=0.1)
        writer.write(data[sent : 7 * MB])  # arrives, and is not counted before the end
        await writer.drain()
        running.kill()
        running.wait(10)
        writer.close()
    before = await counted()
    assert 0 < before < len(data)
    with process(database_url, home) as (_, base):
        async with httpx.AsyncClient(base_url=base, trust_env=False, timeout=30) as http:
            looked = await http.head(url, headers=TUS)
            assert looked.headers["upload-offset"] == str(before)
            at_once = {"Upload-Offset": str(before)}  # nobody waits for a dead one's lock
            done = await http.patch(url, content=data[before:], headers=TUS | PIECE | at_once)
            assert done.status_code == 204, done.text
    await database.close()
    assert (home / "storage" / "uploads" / done.headers["vlog-video-id"]).read_bytes() == data
    assert not [path for path in (home / "storage" / "partial").rglob("*") if path.is_file()]
