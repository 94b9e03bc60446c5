"""How a job ends: once, whole, and in the words the documents use."""

from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from temporalio.testing import ActivityEnvironment

from activities.ending import EndingSteps
from contracts.end_steps import FailJob, Finalize, VerifiedRenditions
from contracts.errors import CANCELLED
from contracts.media import FrameRate
from contracts.renditions import AudioRendition, SubtitleRendition, VideoRendition
from contracts.states import Codec, EventLevel, JobState, StepName, StepOutcome, VideoStatus
from mirror import reads, writes
from mirror.sessions import Database
from mirror.writes import CreatedVideo, Event
from mirror.writes_publishing import publish_video, unpublish_video
from tests.integration.mirror.story import (
    PLAN,
    claim,
    encoded,
    event_names,
    everything_in,
    job_row,
    planned,
    refusing,
    register,
    row,
    rows_of,
    tell,
    upload,
)
from tests.replay.fake_plans import FACTS

QUALITIES = ("720p", "360p")


def finalize(video: CreatedVideo) -> Finalize:
    return Finalize(job_id=video.job_id, video_id=video.video_id, duration_s=24.0, qualities=QUALITIES)


def failure(video: CreatedVideo, **given: str) -> FailJob:
    plain = {"code": "SOURCE_UNREADABLE", "sentence": "The file is broken.", "failed_step": "probe"}
    return FailJob(job_id=video.job_id, video_id=video.video_id, **{**plain, **given})


async def complete(database: Database, video: CreatedVideo) -> bool:
    async with database.write() as s:
        return await writes.complete_job(s, finalize(video))


async def fail(database: Database, video: CreatedVideo, **given: str) -> bool:
    async with database.write() as s:
        return await writes.fail_job(s, failure(video, **given))


async def test_a_completed_job_leaves_a_ready_video(database: Database) -> None:
    video = await planned(database)
    await register(database)
    transcode, ending = claim(video, StepName.TRANSCODE), claim(video, StepName.FINALIZE)
    await tell(database, transcode, encoded(4, 3))
    await tell(database, ending)
    assert await complete(database, video)
    assert not await complete(database, video)
    job = await job_row(database, video)
    assert (job["state"], job["progress_percent"], job["current_step"]) == ("completed", 100, "finalize")
    assert (job["video_status"], job["playable_at"] is not None) == ("ready", True)
    names = await event_names(database, video)
    assert names.count("job.succeeded") == 1
    assert names.count("quality.completed") == 2
    assert {"transcode.done", "job.started"} <= set(names)
    qualities = await rows_of(database, "SELECT * FROM quality_progress WHERE status = 'completed'")
    assert {(q["quality"], q["segments_completed"], q["progress_percent"]) for q in qualities} == {
        ("720p", 4, 100),
        ("360p", 4, 100),
    }
    assert await rows_of(database, "SELECT 1 FROM job_steps WHERE finished_at IS NULL") == []
    assert (await row(database, "SELECT current_job_id, status FROM workers"))["current_job_id"] is None
    # What its recorder says afterwards comes too late to change anything.
    assert not await tell(database, transcode, encoded(1, 1))
    assert not await tell(database, ending, end=StepOutcome.COMPLETED)
    assert await job_row(database, video) == job


ENDED = ("transcoding_jobs", "videos", "quality_progress", "job_steps", "job_events", "workers")


@pytest.mark.parametrize("well", [True, False], ids=["completed", "failed"])
async def test_an_end_is_written_whole_or_not_at_all(database: Database, well: bool) -> None:
    """Whichever of its rows Postgres refuses, none of the others is changed, and the activity is tried again."""
    video = await planned(database)
    await register(database)
    await tell(database, claim(video, StepName.TRANSCODE), encoded(4, 3))
    steps, environment = EndingSteps(database), ActivityEnvironment()

    async def ends() -> None:
        if well:
            await environment.run(steps.finalize, finalize(video))
        else:
            await environment.run(steps.fail_job, failure(video))

    before = await everything_in(database, *ENDED)
    for table in ENDED:
        async with refusing(database, table):
            with pytest.raises(DBAPIError, match="not this one"):
                await ends()
        assert await everything_in(database, *ENDED) == before, f"{table} was refused"
    await ends()
    after = await everything_in(database, *ENDED)
    assert [table for table in ENDED if after[table] == before[table]] == []


async def test_a_step_that_ended_just_before_its_job_still_gets_its_line(database: Database) -> None:
    video = await planned(database)
    await complete(database, video)
    before = await job_row(database, video)
    assert await tell(database, claim(video, StepName.PUBLISH), end=StepOutcome.COMPLETED)
    assert "publish.done" in await event_names(database, video)
    assert await job_row(database, video) == before


@pytest.mark.parametrize("well", [True, False], ids=["completed", "failed"])
async def test_a_step_that_failed_in_the_blink_before_its_job_ended_still_gets_its_line(
    database: Database, well: bool
) -> None:
    """Neither its start nor its end had been written: without this nobody would learn what ffmpeg said."""
    video = await planned(database)
    assert await (complete(database, video) if well else fail(database, video))
    before = await job_row(database, video)
    failed = claim(video, StepName.THUMBNAIL if well else StepName.PROBE)
    assert not await tell(database, failed)
    told: dict[str, Any] = {
        "code": "ENCODER_CRASHED",
        "sentence": "It crashed.",
        "detail": "what ffmpeg said",
        "will_retry": True,
    }
    assert await tell(database, failed, end=StepOutcome.FAILED, **told)
    step = await row(database, "SELECT outcome, will_retry, error_code, error_detail FROM job_steps")
    assert dict(step) == {
        "outcome": "failed",
        "will_retry": False,
        "error_code": "ENCODER_CRASHED",
        "error_detail": "what ffmpeg said",
    }
    assert (await event_names(database, video))[-1] == "step.failed"
    assert await job_row(database, video) == before


ANEW = PLAN.model_copy(
    update={"renditions": tuple(r.model_copy(update={"generation": r.quality == "720p"}) for r in PLAN.renditions)}
)


@pytest.mark.parametrize("well", [True, False], ids=["completed", "failed"])
async def test_the_end_brings_its_plan_since_whoever_made_it_may_tell_too_late(database: Database, well: bool) -> None:
    """A retry goes on with it: by an older one it would look for segments in folders that are not used any more."""
    video = await planned(database)
    end = (finalize(video) if well else failure(video)).model_copy(update={"plan": ANEW})
    async with database.write() as s:
        if isinstance(end, Finalize):
            assert await writes.complete_job(s, end)
        else:
            assert await writes.fail_job(s, end)
    job = await job_row(database, video)
    assert {each["quality"]: each["generation"] for each in job["plan"]["renditions"]} == {"720p": 1, "360p": 0}
    made = await rows_of(database, "SELECT status FROM quality_progress WHERE status <> 'skipped'")
    assert {each["status"] for each in made} == {"completed" if well else "failed"}


async def test_what_the_probe_saw_is_told_after_the_end_too_and_only_once(database: Database) -> None:
    video = await upload(database)
    await complete(database, video)
    probe = claim(video, StepName.PROBE)
    assert await tell(database, probe, end=StepOutcome.COMPLETED, learned=(FACTS,))
    query = "SELECT duration, source_width, source_height FROM videos"
    assert await row(database, query) == {"duration": 24.0, "source_width": 1280, "source_height": 720}
    wide = FACTS.model_copy(update={"video": FACTS.video.model_copy(update={"display_width": 2000})})
    await tell(database, claim(video, StepName.PROBE, attempt=2), end=StepOutcome.COMPLETED, learned=(wide,))
    assert (await row(database, query))["source_width"] == 1280


async def test_what_a_cancel_stopped_leaves_no_line_after_the_end(database: Database) -> None:
    video = await planned(database)
    assert await fail(database, video, code="CANCELLED")
    assert not await tell(database, claim(video, StepName.PROBE), end=StepOutcome.FAILED, code="ENCODER_CRASHED")
    assert await rows_of(database, "SELECT 1 FROM job_steps") == []


async def test_a_fatal_failure_gives_up_the_tries_that_are_left(database: Database) -> None:
    video = await planned(database)
    probe = claim(video, StepName.PROBE)
    await tell(database, probe)
    await tell(database, probe, end=StepOutcome.FAILED, code="SOURCE_UNREADABLE", sentence="The file is broken.")
    job = await job_row(database, video)
    assert (job["state"], job["last_error"], job["video_status"]) == ("claimed", None, "processing")
    # The activity that writes the end is a step too; who failed stays on record all the same.
    await tell(database, claim(video, StepName.FINALIZE))
    assert await fail(database, video)
    job = await job_row(database, video)
    assert (job["state"], job["attempt_number"], job["max_attempts"]) == ("failed", 1, 1)
    assert (job["completed_at"], job["last_error"]) == (None, "The file is broken.")
    assert (job["current_step"], job["worker_id"], job["claimed_at"]) == ("probe", "worker-1", probe.started_at)
    assert (job["video_status"], job["video_error_code"]) == ("failed", "SOURCE_UNREADABLE")
    assert not await fail(database, video, sentence="Again.")
    assert not await complete(database, video)
    assert (await event_names(database, video)).count("job.failed") == 1
    assert await job_row(database, video) == job


async def test_a_failure_whose_recorder_is_late_is_still_a_failure(database: Database) -> None:
    video = await planned(database)
    third = claim(video, StepName.TRANSCODE, attempt=3)
    await tell(database, third, encoded(1, 1))
    key = f"{third.step_key}~0"
    await fail(database, video, code="RETRIES_EXHAUSTED", sentence="It crashed.", failed_step=key)
    await tell(database, third, end=StepOutcome.FAILED, code="ENCODER_CRASHED", detail="the tail\x00 of stderr")
    step = await row(database, "SELECT * FROM job_steps")
    assert (step["outcome"], step["error_code"]) == ("failed", "RETRIES_EXHAUSTED")
    assert step["error_detail"] == "the tail of stderr"
    job = await job_row(database, video)
    assert (job["state"], job["attempt_number"], job["max_attempts"]) == ("failed", 3, 3)
    assert {q["status"] for q in await rows_of(database, "SELECT status FROM quality_progress")} == {
        "failed",
        "skipped",
    }


async def test_messages_for_people_are_short(database: Database) -> None:
    video = await planned(database)
    await fail(database, video, sentence="x" * 5000)
    job = await job_row(database, video)
    assert len(job["last_error"]) == len(job["error_message"]) == 500


async def test_a_failed_retranscode_leaves_a_ready_video_as_it_was(database: Database) -> None:
    video = await planned(database)
    await complete(database, video)
    async with database.write() as s:
        query = text("INSERT INTO transcoding_jobs (video_id, output) VALUES (:id, 'r2') RETURNING id")
        again = (await s.execute(query, {"id": video.video_id})).scalar_one()
    second = CreatedVideo(video.video_id, again, video.slug, VideoStatus.READY, video.request)
    await tell(database, claim(second, StepName.PROBE))
    assert (await job_row(database, second))["video_status"] == "ready"
    await fail(database, second)
    job = await job_row(database, second)
    assert (job["state"], job["video_status"], job["video_error_code"]) == ("failed", "ready", None)


async def test_a_cancelled_job_is_cancelled_and_its_video_says_so(database: Database) -> None:
    video = await planned(database)
    await tell(database, claim(video, StepName.TRANSCODE))
    await fail(database, video, code=CANCELLED, sentence="The job was cancelled.", failed_step="")
    job = await job_row(database, video)
    assert (job["state"], job["last_error"]) == ("cancelled", None)
    assert (job["video_status"], job["video_error_code"]) == ("failed", "CANCELLED")
    assert "job.cancelled" in await event_names(database, video)
    assert (await row(database, "SELECT outcome FROM job_steps"))["outcome"] == "cancelled"


async def test_an_event_told_twice_is_one_row_unless_it_may_repeat(database: Database) -> None:
    video = await planned(database)
    for _ in range(2):
        async with database.write() as s:
            await writes.add_event(s, Event("job.noted", video.job_id, fields={"tag": "a\x00b"}))
            await writes.add_event(s, Event("job.paused", video.job_id, repeats=True))
            await writes.add_event(s, Event("worker.disabled", level=EventLevel.WARNING, actor="ana"))
    assert await event_names(database, video) == ["job.created", "job.noted", "job.paused", "job.paused"]
    assert len(await rows_of(database, "SELECT 1 FROM job_events WHERE job_id IS NULL")) == 2
    async with database.read() as s:
        story = await reads.events(s, video.job_id)
        assert await reads.events(s, video.job_id, after=story[-2].event_id) == story[-1:]
    assert story[1].fields == {"tag": "ab"}


async def test_renditions_come_back_as_they_went_in(database: Database) -> None:
    video = await planned(database)

    def picture(quality: str, width: int, height: int) -> VideoRendition:
        return VideoRendition(
            quality=quality,
            prefix=f"videos/{video.slug}/r1/{quality}/",
            width=width,
            height=height,
            codec=Codec.H264,
            codecs="avc1.64001f",
            bitrate_kbps=600,
            frame_rate=FrameRate(num=30000, den=1001),
            timescale=30000,
            frame_duration=1001,
            segment_frames=180,
            frames=600,
            size_bytes=2**40,
            peak_bandwidth=1,
            average_bandwidth=1,
        )

    def sound(track: int) -> AudioRendition:
        return AudioRendition(
            track=track,
            prefix=f"videos/{video.slug}/r1/audio_{track}/",
            codecs="mp4a.40.2",
            language="und",
            name="Main",
            default=True,
            channels=2,
            timescale=48000,
            segment_durations=((288768, 3), (96000, 1)),
            size_bytes=9,
            peak_bandwidth=1,
            average_bandwidth=1,
        )

    pictures = (picture("360p", 640, 360), picture("720p", 1280, 720))
    words = SubtitleRendition(
        track=0, prefix="s/", language="deu", name="De\0utsch", default=True, forced=False, cues=2, size_bytes=9
    )
    texts = (words, words.model_copy(update={"track": 1, "name": "Signs", "default": False, "forced": True}))
    whole = VerifiedRenditions(video=pictures, audio=(sound(0), sound(1)), subtitles=texts)
    for given in (whole, whole, whole.model_copy(update={"audio": (sound(0),), "subtitles": texts[:1]})):
        async with database.write() as s:
            await writes.record_renditions(s, video.job_id, video.video_id, given)
    async with database.read() as reader:
        found = await reads.renditions(reader, video.video_id)
        shown = await reads.video(reader, video.video_id)
    kept = words.model_copy(update={"name": "Deutsch"})  # Postgres takes no NUL
    assert found == VerifiedRenditions(
        video=(whole.video[1], whole.video[0]), audio=(whole.audio[0],), subtitles=(kept,)
    )
    assert shown is not None and shown.audio == found.audio and shown.subtitles == found.subtitles
    assert shown is not None and [quality.quality for quality in shown.qualities] == ["720p", "360p"]
    await complete(database, video)
    async with database.write() as s:  # a late, second publish of an ended job
        await writes.record_renditions(s, video.job_id, video.video_id, VerifiedRenditions(video=()))
    async with database.read() as reader:
        assert await reads.renditions(reader, video.video_id) == found
        counts = await reads.health_counts(reader)
        job = await reads.job(reader, video.job_id)
    assert counts.videos[VideoStatus.READY] == 1
    assert job is not None and job.state is JobState.COMPLETED


async def test_a_video_is_published_when_it_is_ready_unless_somebody_took_it_off_the_site(database: Database) -> None:
    shown, hidden = await planned(database), await planned(database)
    async with database.write() as s:
        await unpublish_video(s, hidden.video_id, "ana")  # before anybody could watch it
    for video in (shown, hidden):
        await tell(database, claim(video, StepName.TRANSCODE), encoded(4, 3))
        await complete(database, video)
    query = "SELECT published_at IS NOT NULL AS public FROM videos ORDER BY id"
    assert [each["public"] for each in await rows_of(database, query)] == [True, False]
    async with database.write() as s:
        await publish_video(s, hidden.video_id, None)
    assert [each["public"] for each in await rows_of(database, query)] == [True, True]
