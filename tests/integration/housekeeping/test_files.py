"""Bytes that nobody needs go; bytes that somebody may need stay, also when that somebody comes this very moment."""

import asyncio
import os
import time

import pytest

from activities.chores.outputs import OutputsChore
from activities.chores.scratch import ScratchChore
from activities.chores.uploads import UploadsChore
from contracts.errors import StorageUnavailable
from contracts.housekeeping import KeepHouse
from mirror.sessions import Database
from mirror.tables import Job
from mirror.writes import next_video_id
from storage.local import LocalStore
from tests.integration.housekeeping.files import DAY, HOUR, change, completed, names, nothing_goes_below, put
from tests.integration.mirror.story import rows_of, upload

HOUSE = KeepHouse()


# --- outputs ----------------------------------------------------------------------------------------------------


async def removed(database: Database, store: LocalStore, grace_s: float = HOUR) -> int:
    return (await OutputsChore(database, store, grace_s=grace_s).remove_outputs(HOUSE)).count


async def test_what_a_retranscode_replaced_goes_after_the_grace(database: Database, store: LocalStore) -> None:
    video = await upload(database, "film")
    old = ("videos/film/r1/360p/seg_00000.m4s", "videos/film/r1/audio_0/seg_00000.m4s")
    new = ("videos/film/r2/360p/seg_00000.m4s", "videos/film/master.m3u8")
    await put(store, *old, *new)
    await completed(database, video, ago_s=HOUR / 2, output="r2")
    assert await removed(database, store) == 0
    await change(database, "UPDATE transcoding_jobs SET completed_at = now() - interval '2 hours'")
    assert await removed(database, store) == 2
    assert names(store) == sorted(new)
    assert await store.folders("videos/film/") == ("r2",)


async def test_nothing_of_a_video_with_an_unfinished_job_is_touched(database: Database, store: LocalStore) -> None:
    video = await upload(database, "film")
    await completed(database, video, ago_s=DAY, output="r2")
    await put(store, "videos/film/r1/360p/seg_00000.m4s", "videos/film/r3/360p/seg_00000.m4s")
    await change(database, "INSERT INTO transcoding_jobs (video_id, output) VALUES (:id, 'r3')", id=video.video_id)
    assert await removed(database, store) == 0
    assert len(names(store)) == 2


async def test_what_a_retry_would_inherit_stays(database: Database, store: LocalStore) -> None:
    """A retranscode failed: the old stream is served, and a retry goes on where the new one broke off."""
    video = await upload(database, "film")
    await completed(database, video, ago_s=DAY)
    await change(
        database,
        """
        INSERT INTO transcoding_jobs (video_id, output, last_error, attempt_number, last_checkpoint)
        VALUES (:id, 'r2', 'x', 3, now() - interval '1 day')
        """,
        id=video.video_id,
    )
    await put(store, "videos/film/r1/360p/seg_00000.m4s", "videos/film/r2/360p/seg_00000.m4s")
    assert await removed(database, store) == 0


async def test_what_a_cancel_could_not_remove_goes_after_the_grace(database: Database, store: LocalStore) -> None:
    """Postgres, or storage, was away for longer than the cancelled job tried: what is published stays all the same."""
    video = await upload(database, "film")
    await completed(database, video, ago_s=DAY)
    ended = "INSERT INTO transcoding_jobs (video_id, output, cancelled_at) VALUES (:id, :output, now() - interval '{}')"
    await change(database, ended.format("30 minutes"), id=video.video_id, output="r2")
    published = "videos/film/r1/360p/seg_00000.m4s"
    await put(store, published, "videos/film/r1/720p/seg_00000.m4s", "videos/film/r2/360p/seg_00000.m4s")
    assert await removed(database, store) == 0
    await change(database, "UPDATE transcoding_jobs SET cancelled_at = now() - interval '2 hours' WHERE output = 'r2'")
    assert await removed(database, store) == 2
    assert names(store) == [published]


async def test_folders_that_cannot_be_removed_keep_no_other_video_waiting(
    database: Database, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for title in ("stuck", "film"):
        video = await upload(database, title)
        await completed(database, video, ago_s=2 * DAY, output="r2")
        await put(store, f"videos/{title}/r1/360p/seg_00000.m4s", f"videos/{title}/r2/360p/seg_00000.m4s")
    nothing_goes_below("videos/stuck/", monkeypatch)
    with pytest.raises(StorageUnavailable):
        await removed(database, store)
    assert [name for name in names(store) if "/r1/" in name] == ["videos/stuck/r1/360p/seg_00000.m4s"]


async def test_an_output_newer_than_every_job_stays(database: Database, store: LocalStore) -> None:
    """Postgres was restored, or a rebuild has only come to the first of two jobs: the second one's stream is served."""
    video = await upload(database, "film")
    await completed(database, video, ago_s=DAY)
    await put(store, "videos/film/r1/360p/seg_00000.m4s", "videos/film/r2/360p/seg_00000.m4s", "videos/film/rest/a/b")
    assert await removed(database, store) == 0
    assert len(names(store)) == 3


async def test_of_a_ready_video_whose_renditions_have_lost_their_rows_nothing_is_removed(
    database: Database, store: LocalStore
) -> None:
    """A retranscode failed since: the stream that is served is neither its output nor named by any row."""
    video = await upload(database, "film")
    await completed(database, video, ago_s=DAY)
    await change(database, "DELETE FROM video_qualities")
    failed = """
        INSERT INTO transcoding_jobs (video_id, output, last_error, attempt_number, last_checkpoint)
        VALUES (:id, 'r2', 'x', 3, now() - interval '1 day')
    """
    await change(database, failed, id=video.video_id)
    await put(store, "videos/film/r1/360p/seg_00000.m4s")
    await change(database, "UPDATE videos SET status = 'ready'")
    assert await removed(database, store) == 0
    await change(database, "UPDATE videos SET status = 'failed'")
    assert await removed(database, store) == 1


async def test_a_rendition_that_was_started_anew_leaves_its_first_folder(database: Database, store: LocalStore) -> None:
    video = await upload(database, "film")
    await completed(database, video, ago_s=DAY)
    await change(database, "UPDATE video_qualities SET prefix = 'videos/film/r1/360p.1/'")
    await put(store, *(f"videos/film/r1/{name}/seg_00000.m4s" for name in ("360p", "360p.1", "1360p", "720p")))
    assert await removed(database, store) == 1
    assert await store.folders("videos/film/r1/") == ("1360p", "360p.1", "720p")


async def test_a_retry_that_begins_right_now_waits_for_the_removal(
    database: Database, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    video = await upload(database, "film")
    await completed(database, video, ago_s=DAY, output="r2")
    await put(store, "videos/film/r1/360p/seg_00000.m4s")
    removing, go_on = asyncio.Event(), asyncio.Event()
    original = store.delete_prefix

    async def slowly(prefix: str) -> None:
        removing.set()
        await go_on.wait()
        await original(prefix)

    monkeypatch.setattr(store, "delete_prefix", slowly)
    chore = asyncio.create_task(removed(database, store))
    await asyncio.wait_for(removing.wait(), 30)

    async def retry() -> None:
        async with database.write() as s:
            s.add(Job(video_id=video.video_id, output="r3"))

    beginning = asyncio.create_task(retry())
    await asyncio.sleep(0.5)
    assert not beginning.done()
    go_on.set()
    await beginning
    assert await chore == 1


# --- uploads and scratch ----------------------------------------------------------------------------------------


async def test_an_upload_whose_time_is_over_goes_with_its_bytes_unless_they_became_a_video(
    database: Database, store: LocalStore
) -> None:
    video = await upload(database)
    insert = """
        INSERT INTO uploads (id, key, expires_at, finished_at, video_id)
        VALUES (:id, :key, now() + make_interval(secs => :left), :done, :video)
    """
    plain = {"left": -1, "done": None, "video": None}
    await put(store, "uploads/a.part", "uploads/b.part", video.request.source_key)
    for key in ("uploads/a.part", "uploads/b.part"):
        async with store.resume(key) as writer:
            await writer.go_on(0)
            await writer.write(b"half")
    await change(database, insert, **{**plain, "id": "over", "key": "uploads/a.part"})
    await change(database, insert, **{**plain, "id": "here", "key": "uploads/b.part", "left": HOUR})
    await change(database, insert, **{**plain, "id": "done", "key": video.request.source_key, "video": video.video_id})
    assert (await UploadsChore(database, store).remove_expired_uploads(HOUSE)).count == 1
    assert names(store) == sorted(["partial/uploads/b.part", "uploads/b.part", video.request.source_key])
    assert [u["id"] for u in await rows_of(database, "SELECT id FROM uploads")] == ["here"]


async def test_an_upload_that_is_still_being_written_holds_up_no_other(database: Database, store: LocalStore) -> None:
    insert = "INSERT INTO uploads (id, key, expires_at) VALUES (:id, :key, now() - make_interval(secs => :ago))"
    chore = UploadsChore(database, store)
    for number, name in enumerate(("slow", "over")):
        await change(database, insert, id=name, key=f"uploads/{name}.part", ago=10 - number)
        async with store.resume(f"uploads/{name}.part") as writer:
            await writer.go_on(0)
            await writer.write(b"half")
    async with store.resume("uploads/slow.part"):
        assert (await chore.remove_expired_uploads(HOUSE)).count == 1
        assert names(store) == ["partial/uploads/slow.part"]
        assert [u["id"] for u in await rows_of(database, "SELECT id FROM uploads")] == ["slow"]
    assert (await chore.remove_expired_uploads(HOUSE)).count == 1
    assert names(store) == []


async def test_half_an_upload_goes_after_a_day_and_one_under_way_stays(database: Database, store: LocalStore) -> None:
    async with store.writer("uploads/1.mp4") as writer:
        await writer.write(b"half")
        stale = store.root / "uploads" / ".2.mp4.abc"
        stale.write_bytes(b"half")
        os.utime(stale, (time.time() - 2 * DAY,) * 2)
        assert (await ScratchChore(database, store).remove_scratch(HOUSE)).count == 1
        await writer.commit()
    assert names(store) == ["uploads/1.mp4"]


async def test_pieces_whose_upload_is_forgotten_go_and_others_stay(database: Database, store: LocalStore) -> None:
    async with database.write() as s:
        forgotten, coming, young = [await next_video_id(s) for _ in range(3)]
    await change(database, "INSERT INTO uploads (id, key) VALUES ('coming', :key)", key=f"uploads/{coming}.mp4")
    keys = [f"uploads/{number}.mp4" for number in (forgotten, coming, young, young + 1000)]
    for key in keys:
        async with store.resume(key) as writer:
            await writer.go_on(0)
            await writer.write(b"half")
        if key != keys[2]:
            os.utime(store.root / "partial" / key, (time.time() - 2 * DAY,) * 2)
    assert (await ScratchChore(database, store).remove_scratch(HOUSE)).count == 1
    assert names(store) == sorted(f"partial/{key}" for key in keys[1:])


async def test_sources_without_a_video_and_copies_of_ended_jobs_go(database: Database, store: LocalStore) -> None:
    video = await upload(database, "film")
    ended = await upload(database, "ended")
    await change(database, "UPDATE transcoding_jobs SET completed_at = now() WHERE id = :id", id=ended.job_id)
    kept = ["uploads/notes.txt", video.request.source_key, f"remuxed/{video.video_id}-{video.job_id}.mkv"]
    async with database.write() as s:  # intakes that took a number and died
        cut, short, young, whole = [await next_video_id(s) for _ in range(4)]
    kept.append(f"uploads/{whole}.mov")  # of an upload whose API was killed just before its rows were written
    await change(database, "INSERT INTO uploads (id, key) VALUES ('whole', :key)", key=kept[-1])
    over = [
        f"uploads/{cut}.mp4",
        f"uploads/{short}",
        f"remuxed/{ended.video_id}-{ended.job_id}.mkv",
        "remuxed/7-77777.mkv",
    ]
    await put(store, *kept, *over)
    for key in (*kept, *over):
        os.utime(store.path(key), (time.time() - 2 * DAY,) * 2)
    fresh = [f"uploads/{young}.mp4", "remuxed/8-88888.mkv"]
    await put(store, *fresh)  # an intake that has not written its rows yet; a storyboard that still reads
    assert (await ScratchChore(database, store).remove_scratch(HOUSE)).count == len(over)
    assert names(store) == sorted([*kept, *fresh])


async def test_sources_of_videos_that_this_database_never_knew_stay(database: Database, store: LocalStore) -> None:
    """After a restore, or with an empty database beside a full storage, they are all that is left of their videos."""
    last = (await upload(database, "film")).video_id
    later = [f"uploads/{last + 1}.mp4", f"uploads/{last + 1000}.mp4"]
    await put(store, *later)
    for key in later:
        os.utime(store.path(key), (time.time() - 2 * DAY,) * 2)
    assert (await ScratchChore(database, store).remove_scratch(HOUSE)).count == 0
    assert names(store) == sorted(later)
