"""Four workers encode one video together; two of them reach only the API, and one of those is killed."""

from contextlib import ExitStack
from pathlib import Path

from media.tools import Toolbox
from tests.e2e.conftest import make_clip
from tests.e2e.joined import RATE, check_joined, check_redone, redone
from tests.e2e.remote import asking, encoding, remote_worker, serving_elsewhere
from tests.support.counting import CountingFfmpeg

SECONDS = 80


async def test_four_workers_two_of_them_remote_and_one_of_those_killed(tools: Toolbox, tmp_path: Path) -> None:
    clip = tmp_path / "clip.mp4"
    make_clip(tools, clip, seconds=SECONDS, size="320x180")
    counter = CountingFfmpeg(tmp_path / "counting", tools.pick(), pace=1.5)
    ffmpeg = {"VLOG_FFMPEG": str(counter.program)}
    with ExitStack() as running:
        service = running.enter_context(serving_elsewhere(tmp_path, ffmpeg, workers=2))
        near, far = (
            running.enter_context(remote_worker(service, name, tmp_path, **ffmpeg)) for name in ("near", "far")
        )
        await asking(service, near.name, far.name)
        created = await service.upload(clip, title="together")
        await encoding(service, created["job_id"], created["slug"], near.name, far.name)
        far.process.kill()
        video = await service.ended(created["video_id"], within=300)
        assert video["status"] == "ready", video
        who = await service.query(
            "SELECT DISTINCT worker_name FROM job_steps WHERE job_id = $1 AND step = 'transcode'", created["job_id"]
        )
        assert len(who) == 4
        await check_joined(service, tools, created["slug"], SECONDS * RATE)
        again = await redone(service, counter, created["job_id"], SECONDS * RATE)
        print("encoded again:", [(step.first_segment, step.frames) for step in again if step.lost])
        assert any(step.lost for step in again), "the kill met no running step"
        check_redone(again)
