"""The flip: manifests follow the rows, and a late attempt brings nothing back."""

from pathlib import Path

from temporalio.testing import ActivityEnvironment

from activities.publishing import PublishSteps
from contracts.end_steps import Finalize, Publish, VerifiedRenditions
from contracts.ids import JobId
from mirror import reads, writes, writes_again
from mirror.sessions import Database
from mirror.writes_again import Again
from storage.local import LocalStore
from tests.integration.commands.story import rendition
from tests.integration.mirror.story import planned


async def test_a_late_publish_does_not_bring_back_what_a_retranscode_replaced(
    database: Database, tmp_path: Path
) -> None:
    video = await planned(database)
    publish = PublishSteps(LocalStore(tmp_path), database).publish
    master = tmp_path / "videos" / video.slug / "master.m3u8"

    async def flip(job_id: JobId, output: str) -> Publish:
        whole = VerifiedRenditions(video=(rendition(video.slug, "360p", output),))
        request = Publish(job_id=job_id, video_id=video.video_id, slug=video.slug, renditions=whole)
        await ActivityEnvironment().run(publish, request)
        async with database.write() as s:
            end = Finalize(job_id=job_id, video_id=video.video_id, duration_s=24, qualities=("360p",))
            assert await writes.complete_job(s, end)
        return request

    first = await flip(video.job_id, "r1")
    assert "r1/360p/playlist.m3u8" in master.read_text()
    async with database.write() as s:
        again = await writes_again.retranscode_video(s, video.video_id, Again())
    assert again is not None
    await flip(again.job_id, "r2")
    served = master.read_bytes()
    assert b"r2/360p/playlist.m3u8" in served and b"r1/" not in served

    await ActivityEnvironment().run(publish, first)  # its worker was thought dead
    assert master.read_bytes() == served
    async with database.read() as reading:
        [current] = (await reads.renditions(reading, video.video_id)).video
    assert current.prefix.endswith("/r2/360p/")
