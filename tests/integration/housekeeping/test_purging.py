"""Videos that were deleted long ago: all of their bytes go, or they stay to be purged."""

import asyncio
from pathlib import Path

import pytest
from sqlalchemy import text

from activities.chores.purging import PurgingChore
from contracts.errors import StorageUnavailable
from contracts.housekeeping import KeepHouse
from mirror.chores_files import begin_purge
from mirror.newness import newness
from mirror.sessions import Database
from mirror.slugs import slug_of
from mirror.writes import CreatedVideo
from storage.local import LocalStore
from tests.integration.housekeeping.files import DAY, change, completed, names, nothing_goes_below, put
from tests.integration.mirror.story import row, rows_of, upload

HOUSE = KeepHouse()


async def purged(database: Database, store: LocalStore) -> int:
    return (await PurgingChore(database, store, retention_s=30 * DAY).purge_videos(HOUSE)).count


async def deleted(database: Database, store: LocalStore, *, days: float, title: str = "film") -> CreatedVideo:
    video = await upload(database, title, idempotency_key=title)
    await put(store, video.request.source_key, f"videos/{video.slug}/r1/360p/seg_00000.m4s")
    await completed(database, video, ago_s=100 * DAY)
    await change(
        database,
        "UPDATE videos SET deleted_at = now() - make_interval(secs => :age) WHERE id = :id",
        age=days * DAY,
        id=video.video_id,
    )
    return video


async def test_a_video_deleted_long_ago_leaves_nothing_but_its_slug(database: Database, store: LocalStore) -> None:
    await deleted(database, store, days=31)
    recent = await deleted(database, store, days=29, title="recent")
    assert await purged(database, store) == 1
    assert names(store) == sorted([recent.request.source_key, "videos/recent/r1/360p/seg_00000.m4s"])
    left = await row(database, "SELECT title, source_key, purged_at, idempotency_key FROM videos WHERE slug = 'film'")
    assert left["purged_at"] is not None
    assert (left["title"], left["source_key"], left["idempotency_key"]) == ("", "", None)
    assert len(await rows_of(database, "SELECT id FROM transcoding_jobs")) == 1
    assert await purged(database, store) == 0
    again = await upload(database, "film")
    assert again.slug == f"{slug_of('film')}-2"


async def test_a_purge_that_was_cut_short_goes_on(database: Database, store: LocalStore) -> None:
    video = await deleted(database, store, days=31)
    async with database.write() as s:
        assert await begin_purge(s, video.video_id, retention_s=30 * DAY)
    assert await purged(database, store) == 1
    assert names(store) == []


async def test_a_restore_that_came_first_keeps_the_video(database: Database, store: LocalStore) -> None:
    video = await deleted(database, store, days=31)
    async with database.write() as restoring:
        await restoring.execute(text("UPDATE videos SET deleted_at = NULL"))

        async def purge() -> object:
            async with database.write() as s:
                return await begin_purge(s, video.video_id, retention_s=30 * DAY)

        purging = asyncio.create_task(purge())
        await asyncio.sleep(0.3)
        assert not purging.done()
    assert await purging is None
    assert len(names(store)) == 2


async def test_a_video_whose_job_is_still_being_cancelled_is_not_purged(database: Database, store: LocalStore) -> None:
    await deleted(database, store, days=31)
    await change(database, "UPDATE transcoding_jobs SET completed_at = NULL")
    assert await purged(database, store) == 0


async def test_while_the_disk_is_away_nothing_is_purged(database: Database, tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "storage", is_new=await newness(database))
    (store.root / "uploads").mkdir(parents=True)
    await deleted(database, store, days=31)
    elsewhere = store.root.rename(store.root.with_name("elsewhere"))
    with pytest.raises(StorageUnavailable):
        await purged(database, store)
    elsewhere.rename(store.root)
    assert await purged(database, store) == 1
    assert names(store) == []


async def test_files_that_cannot_be_removed_keep_no_other_video_waiting(
    database: Database, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for days, title in ((33, "stuck"), (32, "stuck too"), (31, "film")):
        await deleted(database, store, days=days, title=title)
    nothing_goes_below("videos/stuck", monkeypatch)
    monkeypatch.setattr("activities.chores.purging.AT_ONCE", 1)  # as if they were as many as a run looks at
    for _ in range(2):
        with pytest.raises(StorageUnavailable, match="Permission denied"):
            await purged(database, store)
    assert await purged(database, store) == 1
    with pytest.raises(StorageUnavailable):
        await purged(database, store)
    nothing_goes_below("videos/nobody/", monkeypatch)
    # The one that has just failed again is the last.
    assert await purged(database, store) == 1
    assert [name for name in names(store) if name.startswith("videos/")] == ["videos/stuck/r1/360p/seg_00000.m4s"]
    assert await purged(database, store) == 1
    assert names(store) == []
