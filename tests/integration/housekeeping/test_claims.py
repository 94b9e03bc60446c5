"""Claims that ran out are shown as lost only when Temporal agrees, and a worker that comes back is believed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from temporalio.api.taskqueue.v1 import TaskQueue as QueueName
from temporalio.api.workflowservice.v1 import PollActivityTaskQueueRequest
from temporalio.client import Client
from temporalio.worker import Worker

from activities.chores.claims import ClaimsChore
from contracts.end_steps import Finalize
from contracts.housekeeping import KeepHouse
from contracts.queues import TaskQueue
from contracts.states import StepName, StepOutcome
from mirror.chores_claims import release_claims
from mirror.outbox import Outbox
from mirror.sessions import Database
from mirror.writes import CreatedVideo
from mirror.writes_end import complete_job
from tests.integration.housekeeping.test_drift import change, name_of, outbox, started
from tests.integration.mirror.story import (
    OTHER,
    claim,
    event_names,
    everything_in,
    job_row,
    planned,
    refusing,
    register,
    rows_of,
    tell,
)
from tests.support.eventually import eventually
from workflows.encode_list import TranscodeList
from workflows.transcode_video import TranscodeVideo

__all__ = ["outbox"]

HOUSE = KeepHouse()
EXPIRE = (
    "UPDATE job_steps SET claim_expires_at = now() - interval '1 minute'",
    "UPDATE transcoding_jobs SET claim_expires_at = now() - interval '1 minute' WHERE claimed_at IS NOT NULL",
)


@asynccontextmanager
async def probing(database: Database, client: Client, outbox: Outbox) -> AsyncIterator[CreatedVideo]:
    """A job whose workflow waits for its probe; nobody serves the probe's queue."""
    video = await planned(database)
    worker = Worker(client, task_queue=TaskQueue.ORCHESTRATE, workflows=[TranscodeVideo, TranscodeList])
    async with worker:
        await started(database, outbox, video)

        async def waits() -> bool:
            described = await client.get_workflow_handle(name_of(video)).describe()
            return len(described.raw_description.pending_activities) == 1

        await eventually(waits, within=60)
        yield video


async def expire(database: Database) -> None:
    for statement in EXPIRE:
        await change(database, statement)


async def released(database: Database, client: Client) -> int:
    return (await ClaimsChore(database, client).release_expired_claims(HOUSE)).count


async def outcomes(database: Database) -> list[str]:
    return [row["outcome"] for row in await rows_of(database, "SELECT outcome FROM job_steps ORDER BY id")]


async def test_a_step_that_temporal_gives_out_again_is_lost(database: Database, client: Client, outbox: Outbox) -> None:
    async with probing(database, client, outbox) as video:
        await tell(database, claim(video, StepName.PROBE))
        assert await released(database, client) == 0, "it is not even late"
        await expire(database)
        assert (await job_row(database, video))["state"] == "expired"
        # Row, video, step and line belong together: when one of them is refused, none has changed.
        touched = ("job_steps", "transcoding_jobs", "videos", "job_events")
        before = await everything_in(database, *touched)
        for table in touched:
            async with refusing(database, table):
                with pytest.raises(DBAPIError, match="not this one"):
                    await released(database, client)
            assert await everything_in(database, *touched) == before, f"{table} was refused"
        assert await released(database, client) == 1
        job = await job_row(database, video)
        assert (job["state"], job["worker_id"], job["video_status"]) == ("unclaimed", None, "pending")
        assert await outcomes(database) == ["lost"]
        assert "requeued:stale" in await event_names(database, video)
        assert await released(database, client) == 0


async def test_a_worker_that_could_not_write_keeps_its_claim(
    database: Database, client: Client, outbox: Outbox
) -> None:
    """Postgres was away: the claim ran out in the mirror, and Temporal still hears the worker."""
    async with probing(database, client, outbox) as video:
        held = await client.workflow_service.poll_activity_task_queue(
            PollActivityTaskQueueRequest(
                namespace="default", task_queue=QueueName(name=TaskQueue.PROBE), identity="studio"
            ),
            timeout=timedelta(seconds=20),
        )
        assert held.activity_id == "probe"
        await tell(database, claim(video, StepName.PROBE))
        await expire(database)
        assert await released(database, client) == 0
        assert await outcomes(database) == ["running"]
        # An earlier attempt of the same step has no such luck.
        await change(database, "UPDATE job_steps SET attempt = 0")
        assert await released(database, client) == 1


async def test_a_worker_that_comes_back_takes_its_row_back_unless_there_is_a_newer_one(
    database: Database, client: Client, outbox: Outbox
) -> None:
    async with probing(database, client, outbox) as video:
        await register(database)
        await tell(database, claim(video, StepName.PROBE))
        await expire(database)
        assert await released(database, client) == 1
        assert await tell(database, claim(video, StepName.PROBE))
        assert (await job_row(database, video))["state"] == "claimed"
        await expire(database)
        assert await released(database, client) == 1
        await tell(database, claim(video, StepName.PROBE, attempt=2), worker=OTHER)
        assert not await tell(database, claim(video, StepName.PROBE))
        assert (await job_row(database, video))["worker_id"] == OTHER.worker_id
        assert await outcomes(database) == ["lost", "running"]


async def test_a_job_that_ends_meanwhile_is_not_drawn_anew(database: Database, client: Client, outbox: Outbox) -> None:
    async with probing(database, client, outbox) as video:
        await tell(database, claim(video, StepName.PROBE))
        await expire(database)
        await change(database, "UPDATE transcoding_jobs SET completed_at = now()")
        assert await released(database, client) == 0
        assert await outcomes(database) == ["running"]


async def test_a_step_that_has_ended_is_not_given_out_again(database: Database, client: Client, outbox: Outbox) -> None:
    """Temporal waits for the probe; a thumbnail that reads as running has ended, and its recorder was silenced."""
    async with probing(database, client, outbox) as video:
        await tell(database, claim(video, StepName.THUMBNAIL), end=StepOutcome.COMPLETED)
        await change(database, "UPDATE job_steps SET outcome = 'running', finished_at = NULL")
        await expire(database)
        assert await released(database, client) == 0


@pytest.mark.parametrize("closed", [True, False], ids=["with its steps", "alone"])
async def test_a_claim_that_is_released_while_its_job_completes_is_left_alone(database: Database, closed: bool) -> None:
    """The chore has read the claim as run out; the job's last step holds the row, and has not committed yet."""
    video = await planned(database)
    transcode = claim(video, StepName.TRANSCODE)
    await tell(database, transcode)
    await expire(database)

    async def release() -> int:
        async with database.write() as s:
            return await release_claims(s, video.job_id, [(transcode.step_key, 0, 1)])

    async def waits() -> bool:
        query = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        return bool(await rows_of(database, query))

    async with database.write() as s:
        if closed:
            end = Finalize(job_id=video.job_id, video_id=video.video_id, duration_s=24, qualities=("720p", "360p"))
            assert await complete_job(s, end)
        else:
            await s.execute(text("UPDATE transcoding_jobs SET completed_at = now()"))
        releasing = asyncio.create_task(release())
        await eventually(waits, within=30, every=0.02)
    assert await releasing == 0
    assert await outcomes(database) == ["completed" if closed else "running"]
    assert (await job_row(database, video))["state"] == "completed"
    assert "requeued:stale" not in await event_names(database, video)
