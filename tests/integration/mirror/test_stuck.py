"""What is repeated without end, and needs a person: it goes on, and somebody is told."""

import pytest
from sqlalchemy import text

from contracts.states import StepName, StepOutcome
from mirror.sessions import Database
from tests.integration.mirror.story import claim, event_names, job_row, planned, rows_of, tell

CODE = "INTERNAL_TRANSIENT"


@pytest.mark.parametrize("step", [StepName.PUBLISH, StepName.FINALIZE])
async def test_an_end_that_keeps_failing_is_tried_on_and_calls_somebody_once(
    database: Database, step: StepName
) -> None:
    video = await planned(database)
    async with database.write() as s:
        hook = "INSERT INTO webhooks (name, url, events) VALUES ('pager', 'http://127.0.0.1:9/', '[\"job_stuck\"]')"
        await s.execute(text(hook))
    told = "SELECT level, message, fields->>'code' AS code FROM job_events WHERE event = 'job.stuck'"
    for attempt in range(1, 8):
        again = claim(video, step, attempt=attempt, max_attempts=0)
        await tell(database, again, end=StepOutcome.FAILED, code=CODE, sentence="Unexpected KeyError.", will_retry=True)
        assert len(await rows_of(database, told)) == (attempt >= 5)
    assert await rows_of(database, told) == [
        {
            "level": "error",
            "message": f"{step} failed 5 times and is tried again until it succeeds: Unexpected KeyError.",
            "code": CODE,
        }
    ]
    assert await rows_of(database, "SELECT event_type FROM webhook_deliveries") == [{"event_type": "job_stuck"}]
    row = await job_row(database, video)
    assert (row["state"], row["attempt_number"], row["last_error"]) == ("retrying", 1, "Unexpected KeyError.")


@pytest.mark.parametrize("waits_for", ["SCRATCH_FULL", "STORAGE_AWAY"])
async def test_a_disk_that_stays_full_or_away_calls_somebody_and_fails_no_job(
    database: Database, waits_for: str
) -> None:
    """Ten times a full disk; that it was drained twelve times before is nobody's trouble."""
    video = await planned(database)
    for generation in range(24):
        code = waits_for if generation >= 12 else "DRAINED"
        work = claim(video, StepName.TRANSCODE, generation=generation)
        await tell(database, work, end=StepOutcome.PARTIAL, code=code, sentence="0 MB to spare.")
        assert (await event_names(database, video)).count("job.stuck") == (generation >= 21), generation
    row = await job_row(database, video)
    assert (row["state"], row["attempt_number"], row["last_error"]) == ("unclaimed", 1, None)
