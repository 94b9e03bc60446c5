"""A video comes in once, whole, under its own name."""

import asyncio

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from contracts.ids import JobId, VideoId
from contracts.states import JobState, Tier, VideoStatus
from contracts.steps import TranscodeRequest
from mirror import reads, writes
from mirror.reads import BadCursor
from mirror.sessions import Database
from tests.integration.mirror.story import (
    PLAN,
    event_names,
    everything_in,
    planned,
    refusing,
    row,
    rows_of,
    upload,
)


async def test_a_video_its_job_and_its_first_event_appear_together(database: Database) -> None:
    made = await upload(database, owner="ana", tier=Tier.CREATOR, qualities=("720p",), actor="ana")
    expected = TranscodeRequest(
        video_id=made.video_id,
        job_id=made.job_id,
        slug="my-holiday",
        source_key=made.request.source_key,
        qualities=("720p",),
        owner="ana",
        tier=Tier.CREATOR,
    )
    assert made.request == expected
    async with database.read() as s:
        video, job = await reads.video(s, made.video_id), await reads.job(s, made.job_id)
        assert await reads.unstarted_jobs(s, older_than_s=0) == [expected]
        assert await reads.unstarted_jobs(s, older_than_s=60) == []
    assert video is not None and job is not None
    assert (video.status, video.job_id, video.owner) == (VideoStatus.PENDING, made.job_id, "ana")
    assert (job.state, job.workflow_id) == (JobState.UNCLAIMED, f"video-{made.video_id}-job-{made.job_id}")
    assert await event_names(database, made) == ["job.created"]


async def test_of_a_video_that_cannot_be_written_whole_there_is_nothing(database: Database) -> None:
    tables = ("videos", "transcoding_jobs", "job_events")
    for table in tables:
        async with refusing(database, table):
            with pytest.raises(DBAPIError, match="not this one"):
                await upload(database)
        assert await everything_in(database, *tables) == {name: [] for name in tables}, f"{table} was refused"


async def test_a_started_job_is_not_started_again(database: Database) -> None:
    made = await upload(database)
    async with database.write() as s:
        await writes.workflow_started(s, made.job_id)
    async with database.read() as s:
        assert await reads.unstarted_jobs(s, older_than_s=0) == []


async def test_slugs_are_unique_even_among_uploads_at_the_same_moment(database: Database) -> None:
    made = await asyncio.gather(*(upload(database, "Same title") for _ in range(5)))
    assert {video.slug for video in made} == {"same-title", *(f"same-title-{n}" for n in range(2, 6))}


async def test_a_deleted_videos_slug_is_not_given_again(database: Database) -> None:
    first = await upload(database, "Gone")
    async with database.write() as s:
        await s.execute(text("UPDATE videos SET deleted_at = now() WHERE id = :id"), {"id": first.video_id})
    assert (await upload(database, "Gone")).slug == "gone-2"


async def test_an_idempotency_key_repeats_the_answer(database: Database) -> None:
    first, again = await asyncio.gather(*(upload(database, "Once", idempotency_key="k1") for _ in range(2)))
    assert first.repeated != again.repeated
    assert (first.video_id, first.job_id, first.slug) == (again.video_id, again.job_id, again.slug)
    assert first.request == again.request
    assert len(await rows_of(database, "SELECT id FROM videos")) == 1
    async with database.read() as s:
        found = await reads.idempotent(s, "k1")
        assert found is not None and found.video_id == first.video_id
        assert await reads.idempotent(s, "k2") is None


async def test_text_that_postgres_cannot_store_is_stored_without_it(database: Database) -> None:
    made = await upload(database, "nul\x00 and \ud800", source_filename="a\x00.mp4")
    assert (await row(database, "SELECT title FROM videos WHERE id = :id", id=made.video_id))["title"] == "nul and ?"


async def test_pages_stay_right_while_new_videos_arrive(database: Database) -> None:
    made = [await upload(database, f"Film {n}", owner="ana" if n % 2 else "ben") for n in range(5)]
    async with database.read() as s:
        first = await reads.videos_page(s, limit=2)
    await upload(database, "Newer")
    async with database.read() as s:
        second = await reads.videos_page(s, limit=2, cursor=first.next_cursor)
        third = await reads.videos_page(s, limit=2, cursor=second.next_cursor)
        anas = await reads.videos_page(s, owner="ana")
        found = await reads.videos_page(s, search="FILM 3")
        wild = await reads.videos_page(s, search="%")
        ready = await reads.videos_page(s, status=VideoStatus.READY)
        with pytest.raises(BadCursor):
            await reads.videos_page(s, cursor="nonsense!")
    ids = [video.video_id for page in (first, second, third) for video in page.items]
    assert ids == [video.video_id for video in reversed(made)]
    assert third.next_cursor is None
    assert len(anas.items) == 2
    assert [video.title for video in found.items] == ["Film 3"]
    assert wild.items == () and ready.items == ()


async def test_the_plan_gives_every_quality_a_row(database: Database) -> None:
    made = await planned(database)
    async with database.write() as s:
        await writes.record_plan(s, made.job_id, made.video_id, PLAN)  # repeated: nothing changes
    async with database.read() as s:
        progress = await reads.progress(s, made.video_id)
        jobs = await reads.jobs_page(s, state=JobState.UNCLAIMED)
        assert (await reads.jobs_page(s, state=JobState.CLAIMED)).items == ()
    assert progress is not None
    shown = [(q.quality, q.status.value, q.segments_total) for q in progress.qualities]
    assert shown == [("720p", "pending", 4), ("360p", "pending", 4), ("1080p", "skipped", 0)]
    assert (jobs.items[0].progress_total, jobs.items[0].notes) == (8, PLAN.notes)


async def test_impossible_ids_are_simply_unknown(database: Database) -> None:
    async with database.read() as s:
        for number in (0, -1, 2**63, 2**70):
            assert await reads.video(s, VideoId(number)) is None
            assert await reads.job(s, JobId(number)) is None
            assert await reads.progress(s, VideoId(number)) is None
            assert await reads.events(s, JobId(number)) == []
            assert await reads.steps(s, JobId(number)) == []
        assert await reads.video_by_slug(s, "nul\x00") is None
