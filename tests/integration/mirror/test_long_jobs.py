"""A film of three hours has a thousand steps: news of one of them costs no more than in a short video."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import event, insert, select

from contracts.plan import Span
from contracts.states import StepName, StepOutcome
from mirror import writes
from mirror.deriving import latest_attempts, picture_job, picture_quality
from mirror.playable import is_playable
from mirror.reads_steps import done_spans, open_steps
from mirror.sessions import Database
from mirror.tables import Job, JobStep, QualityProgressRow
from mirror.writes import CreatedVideo
from tests.integration.mirror.story import GRID, PLAN, claim, encoded, job_row, register, rows_of, tell, upload

LENGTH = 4  # segments in a span
NOW = datetime.now(UTC)


async def film(database: Database, spans: int) -> CreatedVideo:
    """Make a job of so many spans of two lists, none of them begun."""
    video = await upload(database)
    grid = GRID.model_copy(update={"frames": spans * LENGTH * GRID.segment_frames})
    cuts = tuple(Span(first_segment=LENGTH * n, segments=LENGTH) for n in range(spans))
    plan = PLAN.model_copy(update={"grid": grid, "spans": cuts, "lists": (("360p",), ("720p",)), "audio": ()})
    async with database.write() as s:
        await writes.record_plan(s, video.job_id, video.video_id, plan)
    return video


def attempt(video: CreatedVideo, span: int, qualities: tuple[str, ...], **given: Any) -> dict[str, Any]:
    """Describe a row as the recorder would have left it, done unless told otherwise."""
    at = NOW - timedelta(seconds=1000 - span)
    plain: dict[str, Any] = {
        "job_id": video.job_id,
        "step": StepName.TRANSCODE,
        "step_key": f"transcode:{LENGTH * span}+{LENGTH}:{','.join(qualities)}",
        "qualities": list(qualities),
        "first_segment": LENGTH * span,
        "segments": LENGTH,
        "generation": 0,
        "attempt": 1,
        "started_at": at,
        "heartbeat_at": at,
        "claim_expires_at": at,
        "finished_at": at,
        "outcome": StepOutcome.COMPLETED,
        "will_retry": False,
        "percent": 100.0,
        "progress": {},
    }
    return plain | given


@contextmanager
def counted(database: Database) -> Iterator[dict[str, int]]:
    """Count the statements sent, and the rows of steps that come back."""
    seen = {"statements": 0, "steps": 0}

    def sent(*_: object) -> None:
        seen["statements"] += 1

    def loaded(*_: object) -> None:
        seen["steps"] += 1

    engine = database._engine.sync_engine
    event.listen(engine, "before_cursor_execute", sent)
    event.listen(JobStep, "load", loaded)
    try:
        yield seen
    finally:
        event.remove(engine, "before_cursor_execute", sent)
        event.remove(JobStep, "load", loaded)


async def test_a_heartbeat_costs_the_same_in_a_long_film(database: Database) -> None:
    await register(database)
    costs = []
    for spans in (3, 500):
        video = await film(database, spans)
        done = [attempt(video, n, (quality,)) for n in range(spans - 1) for quality in ("720p", "360p")]
        async with database.write() as s:
            await s.execute(insert(JobStep), done)
        last = LENGTH * (spans - 1)
        running = claim(
            video,
            StepName.TRANSCODE,
            step_key=f"transcode:{last}+{LENGTH}:720p,360p",
            span=Span(first_segment=last, segments=LENGTH),
        )
        assert await tell(database, running, encoded(1, 1))
        with counted(database) as cost:
            assert await tell(database, running, encoded(2, 3))
        costs.append(cost)
        job = await job_row(database, video)
        assert job["state"] == "claimed" and job["playable_at"] is not None
        qualities = await rows_of(
            database, "SELECT quality, segments_completed FROM quality_progress WHERE job_id = :id", id=video.job_id
        )
        counts = {row["quality"]: row["segments_completed"] for row in qualities}
        assert (counts["720p"], counts["360p"]) == (last + 2, last + 3)
    short, long = costs
    assert long == short
    assert long["statements"] <= 12, "every percent of every step costs them"
    assert long["steps"] <= 2


@pytest.mark.parametrize("seed", range(12))
async def test_what_postgres_adds_up_is_what_the_rows_say(database: Database, seed: int) -> None:
    dice = random.Random(seed)
    spans = 6
    video = await film(database, spans)
    rows = []
    for span in range(spans):
        for qualities in (("720p", "360p"), ("720p",), ("360p",)):
            for number in range(1, dice.randint(0, 3) + 1):
                outcome = dice.choice(list(StepOutcome))
                at = NOW + timedelta(seconds=dice.randint(0, 300))
                rows.append(
                    attempt(
                        video,
                        span,
                        qualities,
                        attempt=number,
                        generation=dice.choice((0, 0, number)),
                        outcome=outcome,
                        started_at=at,
                        finished_at=None if outcome is StepOutcome.RUNNING else at + timedelta(seconds=dice.random()),
                        will_retry=dice.random() < 0.5,
                        percent=50.0,
                        progress=encoded(dice.randint(0, 4), dice.randint(0, 4)).model_dump(mode="json"),
                    )
                )
    async with database.write() as s:
        if rows:
            await s.execute(insert(JobStep), rows)
    async with database.read() as s:
        job = (await s.execute(select(Job).where(Job.id == video.job_id))).scalar_one()
        everything = (await s.execute(select(JobStep).where(JobStep.job_id == video.job_id))).scalars().all()
        qualities_ = (
            (await s.execute(select(QualityProgressRow).where(QualityProgressRow.job_id == video.job_id)))
            .scalars()
            .all()
        )
        whole = latest_attempts(everything)
        some, done = await open_steps(s, video.job_id, but=""), await done_spans(s, video.job_id, but="")
        assert len(some) == sum(step.outcome is not StepOutcome.COMPLETED for step in whole)
        assert picture_job(job, some, qualities_, done) == picture_job(job, whole, qualities_)
        for quality in qualities_:
            assert picture_quality(quality, some, done) == picture_quality(quality, whole)
        assert is_playable(PLAN, some, done) == is_playable(PLAN, whole)
