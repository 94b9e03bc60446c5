"""A cancel removes what its job has made, and nothing that people are watching."""

from pathlib import Path

from temporalio.testing import ActivityEnvironment

from activities.removing import RemovalSteps
from contracts.end_steps import RemovePartial, VerifiedRenditions
from mirror import writes, writes_again, writes_commands
from mirror.sessions import Database
from mirror.writes_again import Again
from storage.local import LocalStore
from tests.integration.mirror.story import upload
from tests.replay.fake_plans import PLAN
from tests.replay.fake_steps import whole

ENVIRONMENT = ActivityEnvironment()


async def test_only_folders_of_its_output_that_no_row_names_are_removed(database: Database, tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    video = await upload(database)
    here = f"videos/{video.slug}/"
    published = whole(PLAN.renditions[1]).model_copy(update={"prefix": f"{here}r1/360p/"})
    async with database.write() as s:
        await writes.record_renditions(s, video.job_id, video.video_id, VerifiedRenditions(video=(published,)))
    for key in ("r1/360p/seg_00000.m4s", "r1/720p/seg_00000.m4s", "r1/audio_1/init.mp4", "r2/360p/init.mp4", "x.jpg"):
        await store.put_bytes(here + key, b"x")
    steps = RemovalSteps(store, database)
    for output, left in (("r1", ["r1/360p/seg_00000.m4s", "r2/360p/init.mp4", "x.jpg"]), ("r2", None), ("r2", None)):
        request = RemovePartial(job_id=video.job_id, video_id=video.video_id, slug=video.slug, output=output)
        await ENVIRONMENT.run(steps.remove_partial, request)
        found = [facts.key.removeprefix(here) for facts in await store.list(here)]
        assert found == (left or ["r1/360p/seg_00000.m4s", "x.jpg"])
    assert not (tmp_path / here / "r2").exists()


async def test_a_cancel_that_wakes_up_late_leaves_a_retry_its_output(database: Database, tmp_path: Path) -> None:
    """A job cancelled while it was being started has ended before its workflow hears of it; a retry is at work."""
    store = LocalStore(tmp_path)
    video = await upload(database)
    async with database.write() as s:
        assert await writes_commands.cancel_job(s, video.job_id, None)
    async with database.write() as s:
        retry = await writes_again.retry_video(s, video.video_id, Again())
    assert retry is not None and retry.request.output == video.request.output
    key = f"videos/{video.slug}/{retry.request.output}/360p/seg_00000.m4s"
    await store.put_bytes(key, b"x")
    steps = RemovalSteps(store, database)
    late = RemovePartial(job_id=video.job_id, video_id=video.video_id, slug=video.slug, output=video.request.output)
    await ENVIRONMENT.run(steps.remove_partial, late)
    assert [facts.key for facts in await store.list("videos/")] == [key]
    await ENVIRONMENT.run(steps.remove_partial, late.model_copy(update={"job_id": retry.job_id}))
    assert await store.list("videos/") == []
