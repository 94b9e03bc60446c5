"""Steps that hand back, qualities that are missing, jobs that are cancelled: what the rows say of them."""

from typing import Any

from contracts.end_steps import FailJob, Finalize
from contracts.states import StepName, StepOutcome
from contracts.steps import MissingRendition
from mirror import writes
from mirror.sessions import Database
from tests.integration.mirror.story import OTHER, claim, event_names, job_row, planned, row, rows_of, tell

PARTIAL = StepOutcome.PARTIAL
STEPS = "SELECT generation, attempt, outcome, error_code FROM job_steps WHERE job_id = :id ORDER BY generation, attempt"
QUALITIES = "SELECT quality, status, error_message FROM quality_progress WHERE job_id = :id ORDER BY quality"


async def test_a_drained_step_tells_why_though_its_successor_was_quicker(database: Database) -> None:
    video = await planned(database)
    first = claim(video, StepName.TRANSCODE)
    second = claim(video, StepName.TRANSCODE, generation=1)
    await tell(database, first)
    await tell(database, second, worker=OTHER)
    drained: dict[str, Any] = {"end": PARTIAL, "code": "DRAINED", "sentence": "The worker was stopped."}
    assert not await tell(database, first, **drained)
    assert not await tell(database, first, **drained)  # told twice is told once
    steps = await rows_of(database, STEPS, id=video.job_id)
    assert [(s["outcome"], s["error_code"]) for s in steps] == [("partial", "DRAINED"), ("running", None)]
    assert (await event_names(database, video)).count("aborted:shutdown") == 1
    job = await job_row(database, video)
    assert (job["worker_id"], job["attempt_number"]) == ("worker-2", 1)


async def test_a_lost_attempt_that_speaks_up_late_is_not_heard(database: Database) -> None:
    video = await planned(database)
    first = claim(video, StepName.TRANSCODE)
    await tell(database, first)
    await tell(database, claim(video, StepName.TRANSCODE, attempt=2), worker=OTHER)
    before = await rows_of(database, "SELECT * FROM job_steps ORDER BY id")
    events = await event_names(database, video)
    for end, code in ((PARTIAL, "DRAINED"), (PARTIAL, None), (StepOutcome.FAILED, "X")):
        assert not await tell(database, first, end=end, code=code)
    assert await rows_of(database, "SELECT * FROM job_steps ORDER BY id") == before
    assert await event_names(database, video) == events


async def test_a_ready_video_says_what_is_missing_and_why(database: Database) -> None:
    video = await planned(database)
    missing = (
        MissingRendition(name="720p", code="RETRIES_EXHAUSTED", sentence="ffmpeg crashed on 720p."),
        MissingRendition(name="audio_1", code="SOURCE_UNREADABLE", sentence="The second sound track is damaged."),
    )
    async with database.write() as s:
        end = Finalize(
            job_id=video.job_id, video_id=video.video_id, duration_s=24, qualities=("360p",), missing=missing
        )
        assert await writes.complete_job(s, end)
    job = await job_row(database, video)
    assert (job["state"], job["video_status"]) == ("completed", "ready")
    rows = await rows_of(database, QUALITIES, id=video.job_id)
    assert [(r["quality"], r["status"], r["error_message"]) for r in rows] == [
        ("1080p", "skipped", None),
        ("360p", "completed", None),
        ("720p", "failed", "ffmpeg crashed on 720p."),
    ]
    told = (
        "SELECT event, message, fields FROM job_events WHERE event IN ('quality.failed', 'job.succeeded') ORDER BY id"
    )
    events = await rows_of(database, told)
    assert [e["fields"].get("quality") for e in events] == ["720p", "audio_1", None]
    assert events[-1]["fields"]["missing"] == ["720p", "audio_1"]


async def test_what_was_handed_back_and_never_finished_is_cancelled_with_its_job(database: Database) -> None:
    video = await planned(database)
    step = claim(video, StepName.TRANSCODE)
    await tell(database, step)
    await tell(database, step, end=PARTIAL)
    async with database.write() as s:
        await writes.fail_job(
            s, FailJob(job_id=video.job_id, video_id=video.video_id, code="CANCELLED", sentence="By a person.")
        )
    steps = await rows_of(database, STEPS, id=video.job_id)
    assert [s["outcome"] for s in steps] == ["cancelled"]
    job = await job_row(database, video)
    assert (job["state"], job["video_status"], job["video_error_code"]) == ("cancelled", "failed", "CANCELLED")


async def test_tries_that_never_got_to_tell_are_counted_at_the_end(database: Database) -> None:
    """A file that kills its worker at once leaves no row behind; the job has used its tries all the same."""
    video = await planned(database)
    async with database.write() as s:
        await writes.fail_job(
            s,
            FailJob(
                job_id=video.job_id,
                video_id=video.video_id,
                code="RETRIES_EXHAUSTED",
                sentence="Every worker that tried went silent.",
                failed_step="transcode:0+4:720p,360p",
            ),
        )
    job = await row(database, "SELECT attempt_number, max_attempts FROM transcoding_jobs")
    assert (job["attempt_number"], job["max_attempts"]) == (3, 3)
