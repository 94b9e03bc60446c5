"""The storyboard is made after the job's end: a line of its history, and nothing else."""

from typing import Any

import pytest

from contracts.end_steps import Finalize
from contracts.states import StepName, StepOutcome
from mirror import writes
from mirror.sessions import Database
from mirror.writes import CreatedVideo
from tests.integration.mirror.story import claim, event_names, job_row, planned, register, row, rows_of, tell

STEPS = "SELECT attempt, outcome, worker_id, error_message FROM job_steps WHERE step = 'storyboard' ORDER BY attempt"


async def finished(database: Database) -> CreatedVideo:
    video = await planned(database)
    await register(database)
    await tell(database, claim(video, StepName.PROBE), end=StepOutcome.COMPLETED)
    async with database.write() as s:
        end = Finalize(job_id=video.job_id, video_id=video.video_id, duration_s=24, qualities=("720p", "360p"))
        await writes.complete_job(s, end)
    return video


async def all_but_its_own(database: Database, video: CreatedVideo) -> list[Any]:
    job = await job_row(database, video)
    shown = await row(database, "SELECT * FROM videos WHERE id = :id", id=video.video_id)
    others = await rows_of(database, "SELECT * FROM job_steps WHERE step <> 'storyboard' ORDER BY id")
    return [job, shown, others, await rows_of(database, "SELECT * FROM quality_progress ORDER BY id")]


@pytest.mark.parametrize("outcome", [StepOutcome.COMPLETED, StepOutcome.FAILED, StepOutcome.CANCELLED])
async def test_a_storyboard_is_history_and_touches_neither_job_nor_video(
    database: Database, outcome: StepOutcome
) -> None:
    video = await finished(database)
    before = await all_but_its_own(database, video)
    making = claim(video, StepName.STORYBOARD)
    assert await tell(database, making), "running after the end is not a defeat"
    assert await rows_of(database, STEPS) == [], "a row left running would stay so"
    assert await tell(database, making, end=outcome, sentence="No." if outcome is StepOutcome.FAILED else None)
    assert [step["outcome"] for step in await rows_of(database, STEPS)] == [outcome.value]
    assert await all_but_its_own(database, video) == before
    assert not await tell(database, making, end=StepOutcome.FAILED), "an ended attempt is closed"
    assert (await job_row(database, video))["current_step"] == "finalize"


async def test_a_second_try_is_a_second_line(database: Database) -> None:
    video = await finished(database)
    await tell(database, claim(video, StepName.STORYBOARD), end=StepOutcome.FAILED, sentence="No.", will_retry=True)
    await tell(database, claim(video, StepName.STORYBOARD, attempt=2), end=StepOutcome.COMPLETED)
    assert [step["outcome"] for step in await rows_of(database, STEPS)] == ["failed", "completed"]
    assert (await event_names(database, video))[-2:] == ["step.retrying", "storyboard.done"]
    assert (await job_row(database, video))["state"] == "completed"


async def test_an_early_storyboard_never_shows_as_the_current_step(database: Database) -> None:
    video = await planned(database)
    await register(database)
    await tell(database, claim(video, StepName.VERIFY))
    await tell(database, claim(video, StepName.STORYBOARD))
    assert (await job_row(database, video))["current_step"] == "verify"
