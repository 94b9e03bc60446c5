"""How fast a worker is: what it encodes now, together; else as it was the last time."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from contracts.plan import Span
from contracts.states import StepName, StepOutcome
from contracts.steps import StepProgress
from mirror.reads_registry import worker, workers_page
from mirror.sessions import Database
from tests.integration.mirror.story import OTHER, WORKER, claim, planned, register, tell

BEGAN = datetime.now(UTC) - timedelta(seconds=10)
# Every encode of this story took ten seconds until now, whatever the test itself took.
TEN_SECONDS = """UPDATE job_steps SET heartbeat_at = started_at + interval '10 s',
  finished_at = CASE WHEN finished_at IS NOT NULL THEN started_at + interval '10 s' END"""


async def speed_of(database: Database, worker_id: str = WORKER.worker_id) -> tuple[float | None, float | None]:
    async with database.write() as s:
        await s.execute(text(TEN_SECONDS))
    async with database.read() as s:
        listed = {one.worker_id: one for one in (await workers_page(s)).items}[worker_id]
        alone = await worker(s, worker_id)
    assert alone is not None
    assert (alone.speed, alone.last_speed) == (listed.speed, listed.last_speed)
    return listed.speed, listed.last_speed


async def test_a_workers_speed_is_that_of_all_it_encodes_now_and_is_remembered(database: Database) -> None:
    await register(database)
    await register(database, OTHER)
    assert await speed_of(database) == (None, None)

    video = await planned(database)  # 25 pictures a second
    first = claim(video, StepName.TRANSCODE, started_at=BEGAN)
    span = Span(first_segment=4, segments=4)
    second = claim(video, StepName.TRANSCODE, started_at=BEGAN, step_key="transcode:4+4:720p", span=span)
    sound = claim(video, StepName.AUDIO, started_at=BEGAN)
    await tell(database, first, StepProgress(percent=10, frames=375))
    await tell(database, second, StepProgress(percent=10, frames=125))
    await tell(database, sound, StepProgress(percent=50, frames=9999))
    assert await speed_of(database) == pytest.approx((2.0, None)), "both encodes; a sound is no video"
    assert await speed_of(database, OTHER.worker_id) == (None, None)

    await tell(database, first, end=StepOutcome.COMPLETED)
    await tell(database, second, StepProgress(percent=20, frames=150), end=StepOutcome.FAILED, will_retry=True)
    assert await speed_of(database) == pytest.approx((None, 1.5)), "what failed says nothing of its speed"


async def test_what_a_vanished_worker_held_is_not_its_speed(database: Database) -> None:
    await register(database)
    video = await planned(database)
    await tell(database, claim(video, StepName.TRANSCODE, started_at=BEGAN), StepProgress(percent=10, frames=375))
    assert (await speed_of(database))[0] == pytest.approx(1.5)
    async with database.write() as s:
        await s.execute(text("UPDATE job_steps SET claim_expires_at = now() - interval '1 second'"))
    assert await speed_of(database) == (None, None)
