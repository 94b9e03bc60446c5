"""Claims, tries and fences: what a step's news do to the rows, and what they never do."""

import asyncio
import json
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest
from sqlalchemy import text

from contracts.media import FrameRate, SourceFacts, VideoFacts
from contracts.states import StepName, StepOutcome, WorkerStanding, WorkerStatus
from mirror import reads, writes
from mirror.recorder import StepRecorder
from mirror.sessions import Database
from mirror.writes import WorkerRegistration
from mirror.writes_steps import StepEnd, StepNews, WorkerLoad, record_step
from tests.integration.mirror.story import (
    OTHER,
    PLAN,
    WORKER,
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
from tests.support.eventually import eventually

FAILED, COMPLETED = StepOutcome.FAILED, StepOutcome.COMPLETED


async def test_a_claim_shows_in_job_video_and_worker_at_once(database: Database) -> None:
    video = await planned(database)
    await register(database)
    probe = claim(video, StepName.PROBE)
    await tell(database, probe)
    job = await job_row(database, video)
    assert (job["state"], job["video_status"], job["current_step"]) == ("claimed", "processing", "probe")
    assert (job["worker_id"], job["claimed_at"], job["started_at"]) == ("worker-1", probe.started_at, probe.started_at)
    assert timedelta(seconds=25) < job["claim_expires_at"] - datetime.now(UTC) <= timedelta(seconds=30)
    assert (job["processed_by_worker_id"], job["processed_by_worker_name"]) == ("worker-1", "studio")
    worker = await row(database, "SELECT status, current_job_id FROM workers")
    assert worker == {"status": "busy", "current_job_id": video.job_id}
    await tell(database, probe, end=COMPLETED)
    job = await job_row(database, video)
    assert (job["state"], job["video_status"], job["worker_id"]) == ("unclaimed", "pending", None)
    assert (await row(database, "SELECT status, current_job_id FROM workers"))["status"] == "idle"
    later = claim(video, StepName.TRANSCODE)
    await tell(database, later, worker=OTHER)
    job = await job_row(database, video)
    assert (job["started_at"], job["processed_by_worker_id"]) == (probe.started_at, "worker-2")
    assert await event_names(database, video) == [
        "job.created",
        "job.started",
        "probe.done",
        "quality.started",
        "quality.started",
    ]


# What belongs to a claim, in the order it is written.
CLAIMED = ("job_steps", "quality_progress", "transcoding_jobs", "videos", "job_events", "workers")


@pytest.mark.parametrize("ends", [False, True], ids=["taken", "released"])
async def test_a_claim_is_written_whole_or_not_at_all(database: Database, ends: bool) -> None:
    """Whichever of its rows Postgres refuses, none of the others is changed: it is one transaction."""
    video = await planned(database)
    await register(database)
    transcode = claim(video, StepName.TRANSCODE)
    if ends:
        await tell(database, transcode)

    async def told() -> None:
        recorder = StepRecorder(database, WORKER)
        recorder.started(transcode)
        if ends:
            recorder.ended(transcode, COMPLETED)
        await recorder.close()

    before = await everything_in(database, *CLAIMED)
    for table in CLAIMED:
        async with refusing(database, table):
            await told()
        assert await everything_in(database, *CLAIMED) == before, f"{table} was refused"
    await told()
    after = await everything_in(database, *CLAIMED)
    assert [table for table in CLAIMED if after[table] == before[table]] == []


async def test_progress_moves_qualities_and_job_and_never_back(database: Database) -> None:
    video = await planned(database)
    transcode = claim(video, StepName.TRANSCODE)
    await tell(database, transcode, encoded(2, 4))
    job = await job_row(database, video)
    assert job["progress_percent"] == 54  # 90 % · (4 · 50 % + 1 · 100 %) / 5
    query = "SELECT quality, status, segments_completed, progress_percent FROM quality_progress ORDER BY 1"
    found = [tuple(q.values()) for q in await rows_of(database, query)]
    assert found == [("1080p", "skipped", 0, 0), ("360p", "completed", 4, 100), ("720p", "in_progress", 2, 50)]
    await tell(database, transcode, encoded(1, 1))
    assert [tuple(q.values()) for q in await rows_of(database, query)] == found
    assert (await job_row(database, video))["progress_percent"] == 54
    await tell(database, transcode, end=COMPLETED)
    assert (await job_row(database, video))["progress_percent"] == 90
    assert (await event_names(database, video)).count("quality.completed") == 2


async def test_three_real_tries_and_an_error_only_in_between(database: Database) -> None:
    video = await planned(database)
    for attempt in (1, 2, 3):
        transcode = claim(video, StepName.TRANSCODE, attempt=attempt)
        await tell(database, transcode)
        job = await job_row(database, video)
        assert (job["state"], job["attempt_number"], job["last_error"]) == ("claimed", attempt, None)
        again = attempt < 3
        await tell(database, transcode, end=FAILED, code="ENCODER_CRASHED", sentence="It crashed.", will_retry=again)
        job = await job_row(database, video)
        if again:
            assert (job["state"], job["last_error"]) == ("retrying", "It crashed.")
            assert (job["worker_id"], job["claimed_at"], job["video_status"]) == (None, None, "pending")
        else:
            assert (job["state"], job["last_error"]) == ("claimed", None)  # until the terminal activity speaks
    names = await event_names(database, video)
    assert (names.count("step.retrying"), names.count("step.failed")) == (2, 1)


async def test_an_error_waits_while_another_step_is_held(database: Database) -> None:
    video = await planned(database)
    audio, transcode = claim(video, StepName.AUDIO, step_key="audio:0"), claim(video, StepName.TRANSCODE)
    await tell(database, transcode)
    await tell(database, audio)
    await tell(database, audio, end=FAILED, sentence="No sound.", will_retry=True)
    job = await job_row(database, video)
    assert (job["state"], job["last_error"], job["current_step"]) == ("claimed", None, "transcode")
    await tell(database, transcode, end=COMPLETED)
    assert (await job_row(database, video))["last_error"] == "No sound."


async def test_a_zombie_changes_no_row(database: Database) -> None:
    video = await planned(database)
    first, second = claim(video, StepName.TRANSCODE), claim(video, StepName.TRANSCODE, attempt=2)
    await tell(database, first, encoded(1, 1))
    await tell(database, second, encoded(2, 2), worker=OTHER)
    everything = "SELECT to_jsonb(t) AS row FROM (SELECT * FROM job_steps ORDER BY id) t"
    before = (await rows_of(database, everything), await job_row(database, video), await event_names(database, video))
    assert not await tell(database, first, encoded(4, 4))
    assert not await tell(database, first, end=COMPLETED)
    assert (
        await rows_of(database, everything),
        await job_row(database, video),
        await event_names(database, video),
    ) == before
    lost = await row(database, "SELECT outcome, finished_at FROM job_steps WHERE attempt = 1")
    assert lost["outcome"] == "lost" and lost["finished_at"] is not None
    assert "step.lost" in before[2]


async def test_a_new_generation_costs_no_try_and_a_crash_in_it_does(database: Database) -> None:
    video = await planned(database)
    await tell(database, claim(video, StepName.TRANSCODE))
    drained = claim(video, StepName.TRANSCODE, attempt=2)  # attempt 1 was lost: one try used
    await tell(database, drained, end=StepOutcome.PARTIAL)
    await tell(database, claim(video, StepName.TRANSCODE, generation=1), worker=OTHER)
    assert (await job_row(database, video))["attempt_number"] == 2
    await tell(database, claim(video, StepName.TRANSCODE, generation=1, attempt=2))
    assert (await job_row(database, video))["attempt_number"] == 3
    assert not await tell(database, drained, encoded(4, 4))  # an older generation, although the same attempt number


async def test_an_attempt_declared_lost_by_mistake_takes_itself_back(database: Database) -> None:
    video = await planned(database)
    transcode = claim(video, StepName.TRANSCODE)
    await tell(database, transcode)
    async with database.write() as s:
        await s.execute(text("UPDATE job_steps SET outcome = 'lost', finished_at = now()"))
    assert await tell(database, transcode, encoded(1, 1))
    assert (await row(database, "SELECT outcome, finished_at FROM job_steps")) == {
        "outcome": "running",
        "finished_at": None,
    }


async def test_a_claim_expires_by_itself(database: Database) -> None:
    video = await planned(database)
    silent = StepNews(claim(video, StepName.TRANSCODE, heartbeat_timeout_s=5.0), beat_age_s=6.0)
    async with database.write() as s:
        await record_step(s, silent, WORKER, WorkerLoad(WorkerStatus.BUSY, video.job_id))
    assert (await job_row(database, video))["state"] == "expired"


async def test_what_a_step_learned_is_written_with_its_end(database: Database) -> None:
    video = await upload(database)
    rate = FrameRate(num=25)
    picture = VideoFacts(
        stream=0,
        codec="h264",
        width=720,
        height=576,
        display_width=1024,
        display_height=576,
        frame_rate=rate,
        average_rate=rate,
        packets=600,
        end_s=24.0,
    )
    facts = SourceFacts(format_name="mov\x00", size_bytes=1, duration_s=24.0, video=picture)
    for step, result in ((StepName.PROBE, facts), (StepName.PLAN, PLAN)):
        news = StepNews(claim(video, step), end=StepEnd(COMPLETED), learned=(result,))
        async with database.write() as s:
            assert await record_step(s, news, WORKER, WorkerLoad(WorkerStatus.IDLE, None))
    async with database.read() as s:
        shown, job = await reads.video(s, video.video_id), await reads.job(s, video.job_id)
        steps = await reads.steps(s, video.job_id)
    assert shown is not None and job is not None
    assert (shown.source_width, shown.duration) == (1024, 24.0)
    assert (job.progress_total, job.progress_percent) == (8, 2)
    assert [step.step for step in steps] == [StepName.PROBE, StepName.PLAN]


async def test_a_disabled_worker_stays_disabled_whatever_it_sends(database: Database) -> None:
    video = await planned(database)
    await register(database)
    async with database.write() as s:
        await s.execute(text("UPDATE workers SET status = 'disabled'"))
    await tell(database, claim(video, StepName.PROBE))
    async with database.write() as s:
        assert await writes.worker_heartbeat(s, WORKER.worker_id, WorkerStatus.IDLE) is WorkerStanding.DISABLED
        assert await writes.worker_heartbeat(s, "stranger", WorkerStatus.IDLE) is WorkerStanding.UNKNOWN
        await writes.register_worker(s, WorkerRegistration(WORKER.worker_id, "studio"))
        await writes.worker_gone(s, WORKER.worker_id)
    assert (await row(database, "SELECT status FROM workers"))["status"] == "disabled"


async def test_parallel_steps_of_one_job_do_not_lock_each_other_out(database: Database) -> None:
    video = await planned(database)
    await register(database)
    await register(database, OTHER)
    both = [(claim(video, StepName.AUDIO, step_key="audio:0"), WORKER), (claim(video, StepName.TRANSCODE), OTHER)]
    for done in range(4):
        told = await asyncio.gather(*(tell(database, c, encoded(done, done), worker=w) for c, w in both))
        assert all(told)
    assert len(await rows_of(database, "SELECT 1 FROM job_steps")) == 2


async def test_listeners_hear_of_a_change_when_it_is_committed(database: Database) -> None:
    video = await planned(database)
    heard: list[dict[str, object]] = []
    listener = await asyncpg.connect(database.url.replace("+asyncpg", ""), timeout=10)
    try:
        await listener.add_listener("vlog", lambda *got: heard.append(json.loads(got[-1])))
        await tell(database, claim(video, StepName.PROBE))
        with pytest.raises(ZeroDivisionError):
            async with database.write() as s:
                await writes.notify(s, "transcode_complete", video.video_id)
                raise ZeroDivisionError
        await tell(database, claim(video, StepName.PROBE))

        async def heard_both() -> bool:
            return len(heard) >= 2

        await eventually(heard_both, within=5)
        assert heard == 2 * [{"topic": "transcode_progress", "id": video.video_id}]
    finally:
        await listener.close()


async def test_a_rendition_that_starts_anew_is_not_called_completed_meanwhile(database: Database) -> None:
    video = await planned(database)
    await tell(database, claim(video, StepName.TRANSCODE), encoded(4, 4), end=COMPLETED)
    percent = (await job_row(database, video))["progress_percent"]
    query = """
        SELECT quality, status, segments_completed, progress_percent, completed_at IS NOT NULL AS is_done
        FROM quality_progress WHERE job_id = :id AND status <> 'skipped' ORDER BY quality
    """
    whole = {"status": "completed", "segments_completed": 4, "progress_percent": 100, "is_done": True}
    small, large = await rows_of(database, query, id=video.job_id)
    assert small == {"quality": "360p", **whole} and large == {"quality": "720p", **whole}

    # The check found that 720p is not whole.
    raised = tuple(r.model_copy(update={"generation": r.quality == "720p"}) for r in PLAN.renditions)
    anew = PLAN.model_copy(update={"renditions": raised})
    async with database.write() as s:
        await writes.record_plan(s, video.job_id, video.video_id, anew)
    nothing = {"status": "pending", "segments_completed": 0, "progress_percent": 0, "is_done": False}
    assert await rows_of(database, query, id=video.job_id) == [small, {"quality": "720p", **nothing}]
    again = claim(video, StepName.TRANSCODE, step_key="transcode:0+4:720p.1", qualities=("720p",))
    await tell(database, again, encoded(1, 0))
    begun = {"status": "in_progress", "segments_completed": 1, "progress_percent": 25, "is_done": False}
    assert await rows_of(database, query, id=video.job_id) == [small, {"quality": "720p", **begun}]
    assert (await job_row(database, video))["progress_percent"] == percent, "the job's own never goes back"
    # The first plan, told late by a worker that Postgres had not heard for a while, changes nothing.
    async with database.write() as s:
        await writes.record_plan(s, video.job_id, video.video_id, PLAN)
    assert (await job_row(database, video))["plan"]["renditions"][0]["generation"] == 1
    await tell(database, again, encoded(4, 0), end=COMPLETED)
    assert await rows_of(database, query, id=video.job_id) == [small, large]


async def test_a_worker_that_lacks_the_ffmpeg_costs_no_try_and_breaks_no_quality(database: Database) -> None:
    video = await planned(database)
    await register(database)
    recorder = StepRecorder(database, WORKER)
    work = claim(video, StepName.TRANSCODE, generation=0)
    recorder.started(work)
    recorder.ended(work, FAILED, code="BUILD_MISSING", sentence="This worker has no such ffmpeg.")
    recorder.started(claim(video, StepName.TRANSCODE, generation=1))
    await recorder.close()
    steps = await rows_of(database, "SELECT generation, outcome, tries FROM job_steps ORDER BY generation")
    assert [tuple(step.values()) for step in steps] == [(0, "partial", 1), (1, "running", 1)]
    assert (await job_row(database, video))["attempt_number"] == 1
    statuses = await rows_of(database, "SELECT status FROM quality_progress WHERE quality <> '1080p'")
    assert {each["status"] for each in statuses} == {"in_progress"}
    assert "job.retry_later" in await event_names(database, video)
