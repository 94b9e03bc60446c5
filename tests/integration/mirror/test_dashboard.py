"""SQL of the documented dashboard, with the columns and conditions of its document, runs here unchanged."""

from contracts.end_steps import FailJob, Finalize
from contracts.states import StepName, StepOutcome
from mirror import writes, writes_again
from mirror.sessions import Database
from mirror.writes_again import Again
from tests.integration.mirror.story import WORKER, claim, encoded, planned, register, row, rows_of, tell, upload

# Derived job states, as the table of the document says them.
DOCUMENTED_STATES = {
    "Unclaimed": "claimed_at IS NULL AND completed_at IS NULL",
    "Claimed": "claimed_at IS NOT NULL AND claim_expires_at > NOW() AND completed_at IS NULL",
    "Expired": "claimed_at IS NOT NULL AND claim_expires_at <= NOW() AND completed_at IS NULL",
    "Completed": "completed_at IS NOT NULL",
    "Failed": "last_error IS NOT NULL AND attempt_number >= max_attempts",
    "Retrying": "last_error IS NOT NULL AND attempt_number < max_attempts AND claimed_at IS NULL",
}

STATUSES = "SELECT status, COUNT(*) FROM videos WHERE deleted_at IS NULL GROUP BY status"

CLAIMABLE = """
    SELECT j.id FROM transcoding_jobs j JOIN videos v ON v.id = j.video_id
    WHERE (v.status = 'pending' OR (v.status = 'ready' AND j.retranscode_metadata IS NOT NULL))
      AND v.deleted_at IS NULL AND j.claimed_at IS NULL AND j.completed_at IS NULL
"""

ACTIVE_JOBS = """
    SELECT v.title, v.slug, j.current_step, j.progress_percent, j.attempt_number, j.max_attempts, j.last_error,
           j.started_at, j.last_checkpoint, j.claim_expires_at, j.processed_by_worker_name, w.worker_name, w.status
    FROM transcoding_jobs j JOIN videos v ON v.id = j.video_id LEFT JOIN workers w ON w.worker_id = j.worker_id
    WHERE j.claimed_at IS NOT NULL AND j.completed_at IS NULL AND j.claim_expires_at > NOW()
"""

QUALITIES = """
    SELECT quality, status, segments_total, segments_completed, progress_percent, started_at, completed_at,
           error_message
    FROM quality_progress WHERE job_id = :id ORDER BY quality
"""

WORKERS = """
    SELECT w.worker_id, w.worker_name, w.worker_type, w.status, w.registered_at, w.last_heartbeat, w.capabilities,
           w.metadata, j.id AS job_id, j.current_step, j.progress_percent, v.title
    FROM workers w LEFT JOIN transcoding_jobs j ON j.id = w.current_job_id LEFT JOIN videos v ON v.id = j.video_id
    ORDER BY w.last_heartbeat DESC NULLS LAST
"""

STALE_WORKERS = """
    SELECT id FROM workers WHERE status != 'offline'
      AND (last_heartbeat < NOW() - INTERVAL '5 minutes'
           OR (last_heartbeat IS NULL AND registered_at < NOW() - INTERVAL '5 minutes'))
"""


async def in_state(database: Database, name: str, job_id: int) -> bool:
    query = f"SELECT id FROM transcoding_jobs WHERE id = :id AND ({DOCUMENTED_STATES[name]})"
    return bool(await rows_of(database, query, id=job_id))


async def test_the_documented_states_of_a_job_from_upload_to_its_end(database: Database) -> None:
    await register(database)
    video = await planned(database)
    assert [found["id"] for found in await rows_of(database, CLAIMABLE)] == [video.job_id]
    assert await in_state(database, "Unclaimed", video.job_id)

    step = claim(video, StepName.TRANSCODE)
    await tell(database, step, encoded(1, 2))
    assert await in_state(database, "Claimed", video.job_id)
    assert await rows_of(database, CLAIMABLE) == []

    # Its worker failed, and there are tries left.
    await tell(
        database, step, end=StepOutcome.FAILED, code="ENCODER_CRASHED", sentence="ffmpeg crashed.", will_retry=True
    )
    assert await in_state(database, "Retrying", video.job_id)
    assert [found["status"] for found in await rows_of(database, STATUSES)] == ["pending"]

    # The next one vanished.
    again = claim(video, StepName.TRANSCODE, attempt=2, heartbeat_timeout_s=0.01)
    await tell(database, again, encoded(2, 2))
    assert await in_state(database, "Expired", video.job_id)

    async with database.write() as s:
        end = Finalize(job_id=video.job_id, video_id=video.video_id, duration_s=24, qualities=("720p", "360p"))
        await writes.complete_job(s, end)
    assert await in_state(database, "Completed", video.job_id)
    assert [found["status"] for found in await rows_of(database, STATUSES)] == ["ready"]

    failed = await upload(database)
    async with database.write() as s:
        end_badly = FailJob(
            job_id=failed.job_id, video_id=failed.video_id, code="SOURCE_UNREADABLE", sentence="Broken."
        )
        await writes.fail_job(s, end_badly)
    assert await in_state(database, "Failed", failed.job_id)


async def test_active_jobs_and_workers_with_their_job(database: Database) -> None:
    await register(database)
    video = await planned(database, title="My holiday")
    await tell(database, claim(video, StepName.TRANSCODE), encoded(1, 2))

    active = await row(database, ACTIVE_JOBS)
    assert (active["title"], active["current_step"], active["worker_name"]) == ("My holiday", "transcode", "studio")
    assert (active["status"], active["processed_by_worker_name"]) == ("busy", "studio")
    assert 0 < active["progress_percent"] < 100 and active["last_error"] is None

    shown = await row(database, WORKERS)
    assert (shown["worker_id"], shown["status"], shown["job_id"]) == (WORKER.worker_id, "busy", video.job_id)
    assert shown["title"] == "My holiday"

    qualities = {found["quality"]: found for found in await rows_of(database, QUALITIES, id=video.job_id)}
    assert qualities["1080p"]["status"] == "skipped"
    assert (qualities["360p"]["status"], qualities["360p"]["segments_completed"]) == ("in_progress", 2)
    assert await rows_of(database, STALE_WORKERS) == []


async def test_a_queued_retranscode_is_claimable_and_its_video_plays(database: Database) -> None:
    video = await planned(database)
    async with database.write() as s:
        end = Finalize(job_id=video.job_id, video_id=video.video_id, duration_s=24, qualities=("720p",))
        await writes.complete_job(s, end)
        new = await writes_again.retranscode_video(s, video.video_id, Again())
    assert new is not None
    assert [found["id"] for found in await rows_of(database, CLAIMABLE)] == [new.job_id]
    assert [found["status"] for found in await rows_of(database, STATUSES)] == ["ready"]
