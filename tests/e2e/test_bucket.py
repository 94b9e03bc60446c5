"""One video through a service whose storage is a bucket, and a worker that dies on the way.

`make test-s3` runs all end-to-end tests like this; here is one of them for every day.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from media.tools import Toolbox
from storage.s3_multipart import Multipart
from storage.s3_place import s3_place
from tests.e2e.conftest import make_clip, paced
from tests.e2e.joined import RATE, check_joined
from tests.e2e.service import QUICK, Service
from tests.e2e.test_crashes import attempts, encoding_worker
from tests.support.s3 import shared_s3_server

SECONDS = 16


@pytest.fixture(scope="module")
def bucket_service(tools: Toolbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("bucket")
    settings = QUICK | {"VLOG_FFMPEG": str(paced(tools, folder))}
    running = Service(folder / "home", settings, bucket=shared_s3_server().new_url())
    running.start()
    try:
        yield running
    finally:
        code = running.stop()
        left = running.processes()
    assert code == 0
    assert left == []


async def test_a_killed_worker_costs_a_retry_and_the_video_plays_from_the_bucket(
    bucket_service: Service, tools: Toolbox, tmp_path: Path
) -> None:
    service, source = bucket_service, tmp_path / "clip.mp4"
    make_clip(tools, source, seconds=SECONDS, size="640x360")
    created = await service.upload(source, title="crash")
    os.kill(await encoding_worker(service, created["slug"]), signal.SIGKILL)
    video = await service.ended(created["video_id"], within=120)
    assert video["status"] == "ready", video
    assert await attempts(service, created["job_id"]) == [(0, 1, "lost"), (0, 2, "completed")]
    await check_joined(service, tools, created["slug"], SECONDS * RATE)

    segment = f"videos/{created['slug']}/r1/360p/seg_00000.m4s"
    async with httpx.AsyncClient(base_url=service.url) as http:
        answer = await http.get(f"/{segment}")
        assert answer.status_code == 307
        played = await http.get(answer.headers["location"])
    assert played.content == (service.storage / segment).read_bytes()

    # Both workers read one copy of the source, and nobody left half an upload.
    assert [copy.read_bytes() for copy in (service.home / "work/cache").glob("[!.]*")] == [source.read_bytes()]
    assert not (service.home / "storage").exists()
    place = s3_place(str(service.bucket), shared_s3_server().environment)
    async with Multipart.opened(place, 5) as calls:
        assert await calls.unfinished(place.full("")) == []
