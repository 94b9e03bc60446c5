"""A cancel removes what its job has made, and nothing that people are watching."""

from pathlib import Path

from temporalio.testing import ActivityEnvironment

from activities.removing import RemovalSteps
from contracts.steps import RemovePartial, VerifiedRenditions
from mirror import writes
from mirror.sessions import Database
from storage.local import LocalStore
from tests.integration.mirror.story import upload
from tests.replay.fake_steps import PLAN, whole

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
