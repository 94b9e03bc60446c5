"""How fast a worker is: what it encodes now, together; else as it was the last time."""

from sqlalchemy import text

from contracts.media import Span
from contracts.states import StepName, StepOutcome
from contracts.steps import StepProgress
from mirror.reads_registry import worker, workers_page
from mirror.sessions import Database
from tests.integration.mirror.story import OTHER, WORKER, claim, planned, register, tell


async def speed_of(database: Database, worker_id: str = WORKER.worker_id) -> tuple[float | None, float | None]:
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

    video = await planned(database)
    first = claim(video, StepName.TRANSCODE)
    second = claim(video, StepName.TRANSCODE, step_key="transcode:4+4:720p", span=Span(first_segment=4, segments=4))
    sound = claim(video, StepName.AUDIO)
    await tell(database, first, StepProgress(percent=10, speed=1.5))
    await tell(database, second, StepProgress(percent=10, speed=0.75))
    await tell(database, sound, StepProgress(percent=50, speed=40))
    assert await speed_of(database) == (2.25, None), "both encodes; a sound is no video"
    assert await speed_of(database, OTHER.worker_id) == (None, None)

    await tell(database, first, end=StepOutcome.COMPLETED)
    await tell(database, second, StepProgress(percent=20, speed=0.5), end=StepOutcome.FAILED, will_retry=True)
    assert await speed_of(database) == (None, 1.5), "what failed says nothing of its speed"


async def test_what_a_vanished_worker_held_is_not_its_speed(database: Database) -> None:
    await register(database)
    video = await planned(database)
    await tell(database, claim(video, StepName.TRANSCODE), StepProgress(percent=10, speed=1.5))
    assert await speed_of(database) == (1.5, None)
    async with database.write() as s:
        await s.execute(text("UPDATE job_steps SET claim_expires_at = now() - interval '1 second'"))
    assert await speed_of(database) == (None, None)
