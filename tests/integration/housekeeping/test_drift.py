"""Rows that disagree with Temporal are mended, those that agree are left, and what was never started is started."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text
from temporalio import workflow
from temporalio.client import Client, WorkflowFailureError
from temporalio.worker import Worker

from activities.chores import drift as drift_chore
from activities.chores.drift import DriftChore
from activities.chores.knowing import known_workflow
from activities.chores.starting import StartingChore
from activities.failures import FailureInterceptor
from contracts.housekeeping import KeepHouse
from contracts.ids import workflow_id
from contracts.layout import PLAYLIST
from contracts.queues import TaskQueue
from contracts.states import StepName, StepOutcome
from contracts.steps import TranscodeRequest
from mirror.chores_drift import DoubtfulJob
from mirror.outbox import Outbox
from mirror.sessions import Database
from mirror.writes import CreatedVideo
from storage.local import LocalStore
from tests.integration.mirror.story import claim, event_names, job_row, planned, rows_of, tell, upload
from tests.replay.fake_steps import FakeSteps
from tests.support.eventually import eventually
from workflows.encode_list import TranscodeList
from workflows.starting import TranscodeStarter
from workflows.transcode_video import TranscodeVideo

HOUSE = KeepHouse()


@pytest.fixture
async def outbox(database: Database, client: Client) -> Outbox:
    async with database.write() as s:  # the tests of this server share it, and ids are made of these numbers
        moved = "SELECT setval('transcoding_jobs_id_seq', (random() * 1e12)::bigint)"
        await s.execute(text(moved))
    return Outbox(database, TranscodeStarter(client))


@pytest.fixture
def drift(database: Database, client: Client, outbox: Outbox, store: LocalStore) -> DriftChore:
    return DriftChore(database, client, outbox, store)


async def change(database: Database, sql: str, **given: Any) -> None:
    async with database.write() as s:
        await s.execute(text(sql), given)


async def started(database: Database, outbox: Outbox, video: CreatedVideo) -> None:
    """Start a job as an upload does, a while ago."""
    await outbox.start(video.request, "title")
    await change(database, "UPDATE transcoding_jobs SET workflow_started_at = now() - interval '1 minute'")


async def mended(drift: DriftChore) -> int:
    return (await drift.mend_drift(HOUSE)).count


def name_of(video: CreatedVideo) -> str:
    return workflow_id(video.video_id, video.job_id)


@asynccontextmanager
async def serving(client: Client, story: str) -> AsyncIterator[FakeSteps]:
    steps = FakeSteps(story)
    queues = steps.by_queue()
    flows = [TranscodeVideo, TranscodeList]
    async with AsyncExitStack() as running:
        for queue, activities in queues.items():
            worker = Worker(
                client,
                task_queue=queue,
                workflows=flows if queue == TaskQueue.ORCHESTRATE else [],
                activities=activities,
                interceptors=[FailureInterceptor(first_delay_s=0.05)],
                max_heartbeat_throttle_interval=timedelta(milliseconds=50),  # a cancel comes with a beat
            )
            await running.enter_async_context(worker)
        yield steps


async def test_a_workflow_that_runs_is_left_alone(database: Database, drift: DriftChore, outbox: Outbox) -> None:
    video = await upload(database)
    await started(database, outbox, video)
    before = await job_row(database, video)
    assert await mended(drift) == 0
    assert await job_row(database, video) == before


async def test_a_terminated_workflow_ends_its_job_with_the_reason(
    database: Database, client: Client, drift: DriftChore, outbox: Outbox
) -> None:
    video = await planned(database)
    await started(database, outbox, video)
    await tell(database, claim(video, StepName.TRANSCODE))
    await change(database, "UPDATE transcoding_jobs SET claim_expires_at = now() - interval '1 second'")
    await client.get_workflow_handle(name_of(video)).terminate(reason="wrong button")
    assert await mended(drift) == 1
    job = await job_row(database, video)
    assert (job["state"], job["video_status"], job["error_code"]) == ("failed", "failed", "TERMINATED")
    assert "wrong button" in job["last_error"]
    assert "job.failed" in await event_names(database, video)
    assert await mended(drift) == 0


async def test_a_held_job_is_not_even_asked_about(
    database: Database, client: Client, drift: DriftChore, outbox: Outbox
) -> None:
    video = await upload(database)
    await started(database, outbox, video)
    await tell(database, claim(video, StepName.PROBE))
    await client.get_workflow_handle(name_of(video)).terminate()
    assert await mended(drift) == 0
    await change(database, "UPDATE transcoding_jobs SET claim_expires_at = now() - interval '1 second'")
    assert await mended(drift) == 1


async def test_a_completed_workflow_completes_its_row(
    database: Database, client: Client, drift: DriftChore, outbox: Outbox, store: LocalStore
) -> None:
    """The fake steps write nothing to the mirror, as if Postgres had been restored from an older copy."""
    video = await planned(database)
    async with serving(client, "success") as steps:
        await started(database, outbox, video)
        await client.get_workflow_handle(name_of(video)).result()
    stored, _gone = steps.published[0].renditions.video
    await store.put_bytes(stored.prefix + PLAYLIST, b"#EXTM3U")
    assert (await job_row(database, video))["state"] == "unclaimed"
    assert await mended(drift) == 1
    job = await job_row(database, video)
    assert (job["state"], job["video_status"], job["progress_percent"]) == ("completed", "ready", 100)
    # Without a row the folder would be nobody's, and be removed after the next retranscode that fails.
    named = await rows_of(database, "SELECT quality, prefix, job_id FROM video_qualities")
    assert named == [{"quality": stored.quality, "prefix": stored.prefix, "job_id": video.job_id}]


async def test_a_failed_workflow_fails_its_row_with_its_own_words(
    database: Database, client: Client, drift: DriftChore, outbox: Outbox
) -> None:
    video = await upload(database)
    async with serving(client, "unreadable"):
        await started(database, outbox, video)
        with pytest.raises(Exception, match="Workflow execution failed"):
            await client.get_workflow_handle(name_of(video)).result()
    assert await mended(drift) == 1
    job = await job_row(database, video)
    assert (job["state"], job["video_error_code"]) == ("failed", "SOURCE_UNREADABLE")


async def test_a_cancelled_workflow_that_left_no_word_cancels_its_row(
    database: Database, client: Client, drift: DriftChore, outbox: Outbox
) -> None:
    """However it came to be closed without its end: the fake steps write none."""
    video = await planned(database)
    async with serving(client, "cancelled while encoding") as steps:
        await started(database, outbox, video)
        await steps.encoding.wait()
        await client.get_workflow_handle(name_of(video)).cancel()
        with pytest.raises(WorkflowFailureError):
            await client.get_workflow_handle(name_of(video)).result()
    assert (await job_row(database, video))["state"] == "unclaimed"
    assert await mended(drift) == 1
    job = await job_row(database, video)
    assert (job["state"], job["video_status"], job["video_error_code"]) == ("cancelled", "failed", "CANCELLED")
    assert "job.cancelled" in await event_names(database, video)
    assert await mended(drift) == 0


@workflow.defn(name="TranscodeVideo", sandboxed=False)
class Broken:
    """The code of another version, which does not know what to make of a history."""

    @workflow.run
    async def run(self, request: TranscodeRequest) -> None:
        raise KeyError("a bug")


async def test_a_workflow_that_cannot_go_on_calls_somebody_once(
    database: Database, client: Client, drift: DriftChore, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drift_chore, "STUCK_FROM_ATTEMPT", 2)
    video = await upload(database)
    await started(database, outbox, video)
    assert await mended(drift) == 0
    assert "job.stuck" not in await event_names(database, video), "it only waits for a worker"

    async def has_failed() -> bool:
        known = await known_workflow(client, name_of(video))
        return known is not None and known.decides_for >= 2

    async with Worker(client, task_queue=TaskQueue.ORCHESTRATE, workflows=[Broken]):
        await eventually(has_failed, within=20)
    for _ in range(2):
        assert await mended(drift) == 0
    assert (await event_names(database, video)).count("job.stuck") == 1
    # With code that fits it goes on.
    async with serving(client, "success"):
        assert await client.get_workflow_handle(name_of(video)).result()


async def test_an_end_that_was_written_meanwhile_is_kept(
    database: Database, client: Client, drift: DriftChore, outbox: Outbox
) -> None:
    """The chore has read the row as unfinished; the workflow's own last step is faster than it."""
    video = await upload(database)
    await started(database, outbox, video)
    await client.get_workflow_handle(name_of(video)).terminate()
    await change(database, "UPDATE transcoding_jobs SET completed_at = now()")
    assert not await drift._end(DoubtfulJob(video.job_id, video.video_id, name_of(video)))
    assert (await job_row(database, video))["state"] == "completed"


async def test_a_forgotten_workflow_starts_again_and_its_steps_are_newer_than_all_before(
    database: Database, client: Client, drift: DriftChore, outbox: Outbox
) -> None:
    video = await planned(database)
    await tell(database, claim(video, StepName.TRANSCODE, generation=2), end=StepOutcome.PARTIAL)
    await change(database, "UPDATE transcoding_jobs SET workflow_started_at = now() - interval '1 hour'")
    assert await mended(drift) == 1
    [event] = [e async for e in client.get_workflow_handle(name_of(video)).fetch_history_events() if e.event_id == 1]
    sent = event.workflow_execution_started_event_attributes.input.payloads[0].data
    request = TranscodeRequest.model_validate_json(sent)
    assert (request.first_generation, request.resumes) == (3, True)
    assert request.plan is not None and request.plan.renditions[0].quality == "720p"
    assert "job.restarted" in await event_names(database, video)
    # A zombie of the forgotten run says something about an attempt that was never told of.
    assert await tell(database, claim(video, StepName.TRANSCODE, generation=3))
    assert not await tell(database, claim(video, StepName.TRANSCODE, generation=2, attempt=2))
    assert await mended(drift) == 0


async def test_steps_of_a_forgotten_job_begin_with_the_next_generation_and_the_tries_they_have_left(
    database: Database, client: Client, drift: DriftChore, outbox: Outbox
) -> None:
    """Three are allowed. One failed, the next was handed back; two are left."""
    video = await planned(database)
    await tell(database, claim(video, StepName.TRANSCODE), end=StepOutcome.FAILED, will_retry=True)
    await tell(database, claim(video, StepName.TRANSCODE, attempt=2), end=StepOutcome.PARTIAL)
    await tell(database, claim(video, StepName.PROBE), end=StepOutcome.COMPLETED)
    await change(database, "UPDATE transcoding_jobs SET workflow_started_at = now() - interval '1 hour'")
    async with serving(client, "exhausted") as steps:
        assert await mended(drift) == 1
        with pytest.raises(WorkflowFailureError):
            await client.get_workflow_handle(name_of(video)).result()
    assert [(span.generation, span.tries_before) for span in steps.spans] == [(1, 1), (1, 1)]


async def test_a_job_of_this_moment_is_left_to_the_request_that_makes_it(
    database: Database, client: Client, drift: DriftChore, outbox: Outbox
) -> None:
    await upload(database)
    assert (await StartingChore(outbox).start_left_over(HOUSE)).count == 0
    await change(database, "UPDATE transcoding_jobs SET workflow_started_at = now()")
    assert await mended(drift) == 0


async def test_what_was_committed_and_not_started_is_started_once(
    database: Database, client: Client, outbox: Outbox
) -> None:
    video = await upload(database)
    await change(database, "UPDATE transcoding_jobs SET created_at = now() - interval '1 minute'")
    chore = StartingChore(outbox)
    assert (await chore.start_left_over(HOUSE)).count == 1
    run = (await client.get_workflow_handle(name_of(video)).describe()).run_id
    await change(database, "UPDATE transcoding_jobs SET workflow_started_at = NULL")
    assert (await chore.start_left_over(HOUSE)).count == 1
    assert (await client.get_workflow_handle(name_of(video)).describe()).run_id == run


async def test_a_round_looks_at_every_waiting_job_in_batches(
    database: Database, client: Client, drift: DriftChore, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drift_chore, "AT_ONCE", 2)
    videos = [await upload(database, title=f"film {n}") for n in range(3)]
    for video in videos:
        await started(database, outbox, video)
    await client.get_workflow_handle(name_of(videos[-1])).terminate()
    assert [await mended(drift) for _ in range(2)] == [0, 1]
