"""Run the workflow with fake steps on a real Temporal, for tests and for recording histories."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import temporalio.worker.workflow_sandbox as sandbox
from temporalio.api.enums.v1 import EventType, PendingActivityState
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client, WorkflowHandle
from temporalio.common import SearchAttributeKey
from temporalio.service import RPCError, RPCStatusCode
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from activities.failures import FailureInterceptor
from api.pausing import pause
from contracts.ids import JobId, ObjectKey, VideoId, workflow_id
from contracts.queues import SEARCH_OWNER, SEARCH_TIER, SEARCH_VIDEO_ID, SEARCH_VIDEO_STATUS, TaskQueue
from contracts.states import JobKind, Tier
from contracts.steps import PauseJob, SetPriority, TranscodeRequest, TranscodeResult
from runtime.locate import temporal_binary
from runtime.payloads import data_converter
from runtime.temporal_server import DYNAMIC_CONFIG
from tests.replay import gpu_stories, outgrown_stories, paused_stories
from tests.replay.fake_plans import LONG, PLAN
from tests.replay.fake_steps import FakeSteps
from workflows.encode_list import TranscodeList
from workflows.transcode_video import TranscodeVideo

HISTORIES = Path(__file__).parent / "histories"
HOUSE = "housekeeping"
REQUEST = TranscodeRequest(
    video_id=VideoId(1),
    job_id=JobId(1),
    slug="x",
    source_key=ObjectKey("uploads/1.mp4"),
    source_size_bytes=50_000_000,
    max_attempts=2,
)

# Jobs that continue another, or with other promises, by story.
REQUESTS = {
    gpu_stories.RETRY: REQUEST.model_copy(
        update={"kind": JobKind.RETRY, "plan": gpu_stories.planned(gpu_stories.RETRY, PLAN, LONG)}
    ),
    gpu_stories.VANISHES: REQUEST.model_copy(update={"heartbeat_timeout_s": 0.5}),
    "retry": REQUEST.model_copy(update={"kind": JobKind.RETRY, "plan": PLAN, "keep": ("360p", "audio_0")}),
    "retranscode": REQUEST.model_copy(update={"kind": JobKind.RETRANSCODE, "output": "r2"}),
    "partial retranscode": REQUEST.model_copy(
        update={
            "kind": JobKind.RETRANSCODE,
            "output": "r2",
            "plan": PLAN,
            "qualities": ("720p",),
            "keep": ("360p", "audio_0"),
        }
    ),
}


def dashed(story: str) -> str:
    return story.replace(" ", "-")


Handle = WorkflowHandle[TranscodeVideo, TranscodeResult]


async def _cancel_the_plan(handle: Handle, steps: FakeSteps) -> None:
    await steps.planning.wait()
    await handle.cancel()


async def _cancel_encoders(handle: Handle, steps: FakeSteps) -> None:
    await steps.encoding.wait()
    await handle.cancel()


async def _pause_and_resume(handle: Handle, steps: FakeSteps) -> None:
    await steps.encoding.wait()
    await handle.execute_update(TranscodeVideo.pause, PauseJob())
    await handle.execute_update(TranscodeVideo.pause, PauseJob())  # twice is once
    await handle.execute_update(TranscodeVideo.set_priority, SetPriority(tier=Tier.VIRAL))
    steps.let_go = True
    await handle.execute_update(TranscodeVideo.resume)


async def _pause_after_a_failure(handle: Handle, steps: FakeSteps) -> None:
    """Pause as the API does: it can see what failed."""
    await _second_try(handle, steps)
    assert steps.temporal is not None
    await pause(steps.temporal, handle, named="pause", within=timedelta(seconds=10))
    steps.let_go = True
    await handle.execute_update(TranscodeVideo.resume)


async def _cancel_after_a_failure(handle: Handle, steps: FakeSteps) -> None:
    await _second_try(handle, steps)
    await handle.cancel()


async def _second_try(handle: Handle, steps: FakeSteps) -> None:
    """Wait until the first has failed, and the second runs or waits for its time."""
    if steps.story in paused_stories.SECOND_RUNS:
        await steps.encoding.wait()
        return
    assert steps.temporal is not None
    while not await _waits_for_its_next_try(steps.temporal, handle.id):
        await asyncio.sleep(0.05)


async def _waits_for_its_next_try(client: Client, name: str) -> bool:
    try:
        found = (await client.get_workflow_handle(name).describe()).raw_description
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        return False  # a child that is about to begin
    waits = any(
        step.attempt > 1 and step.state == PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED
        for step in found.pending_activities
    )
    below = [await _waits_for_its_next_try(client, child.workflow_id) for child in found.pending_children]
    return waits or any(below)


async def _pause_the_check(handle: Handle, steps: FakeSteps) -> None:
    await steps.verifying.wait()
    await handle.execute_update(TranscodeVideo.pause, PauseJob())
    steps.paused.set()
    while not await _has_decided_after(handle, "verify"):
        await asyncio.sleep(0.05)
    steps.calls.append("resume")
    await handle.execute_update(TranscodeVideo.resume)


async def _has_decided_after(handle: Handle, step: str) -> bool:
    """Tell whether the workflow knows how a step ended, and has done what follows from it."""
    events = (await handle.fetch_history()).events
    named = {e.event_id: e.activity_task_scheduled_event_attributes.activity_id for e in events}
    ended = [e.activity_task_completed_event_attributes.scheduled_event_id for e in events]
    place = next((place for place, number in enumerate(ended) if named.get(number) == step), len(events))
    return _has_decided(events[place:])


def _has_decided(events: Sequence[HistoryEvent]) -> bool:
    return any(e.HasField("workflow_task_completed_event_attributes") for e in events)


def _goes_on_from(events: Sequence[HistoryEvent]) -> str:
    """Name the run that this one goes on from."""
    return events[0].workflow_execution_started_event_attributes.continued_execution_run_id


async def _cancel_the_publishing(handle: Handle, steps: FakeSteps) -> None:
    """Let it be published only when the workflow has heard of the cancel and decided what to make of it."""
    await steps.publishing.wait()
    await handle.cancel()
    while not await has_heard_of_the_cancel(handle):
        await asyncio.sleep(0.05)
    steps.let_go = True


async def has_heard_of_the_cancel(handle: WorkflowHandle[Any, Any]) -> bool:
    """Tell whether the workflow knows of a cancel, and has done what follows from it."""
    events = (await handle.fetch_history()).events
    asked = [bool(e.HasField("workflow_execution_cancel_requested_event_attributes")) for e in events]
    after = events[asked.index(True) :] if any(asked) else []
    return _has_decided(after)


async def _pause_a_wait(handle: Handle, steps: FakeSteps) -> None:
    while EventType.EVENT_TYPE_TIMER_STARTED not in [e.event_type for e in (await handle.fetch_history()).events]:
        await asyncio.sleep(0.05)
    await handle.execute_update(TranscodeVideo.pause, PauseJob())
    await handle.execute_update(TranscodeVideo.resume)


async def _cancel_in_a_pause(handle: Handle, steps: FakeSteps) -> None:
    await steps.encoding.wait()
    await handle.execute_update(TranscodeVideo.pause)  # with no word of what was seen, as by hand
    await handle.cancel()


async def _pause_between_runs(handle: Handle, steps: FakeSteps) -> None:
    """Pause when it has been decided to go on in a new run; resume when that one has begun to do nothing."""
    await steps.stopping.wait()
    await handle.execute_update(TranscodeVideo.pause, PauseJob())
    steps.paused.set()
    while not _goes_on_from(events := (await handle.fetch_history()).events) or not _has_decided(events):
        await asyncio.sleep(0.05)
    assert not any(e.HasField("activity_task_scheduled_event_attributes") for e in events), "it is paused"
    steps.calls.append("resume")
    await handle.execute_update(TranscodeVideo.resume)


async def _cancel_between_runs(handle: Handle, steps: FakeSteps) -> None:
    """Cancel when it has been decided to go on in a new run, while a step still holds that up."""
    await steps.stopping.wait()
    await handle.cancel()
    while not await has_heard_of_the_cancel(handle):
        await asyncio.sleep(0.05)
    steps.paused.set()


# What somebody does while the story goes on.
COMMANDS: dict[str, Callable[[Handle, FakeSteps], Awaitable[None]]] = {
    "cancelled": _cancel_the_plan,
    "cancelled while encoding": _cancel_encoders,
    "cancelled lists": _cancel_encoders,
    "cancelled in a pause": _cancel_in_a_pause,
    "cancelled while it drains": _cancel_encoders,
    "cancelled while it crashes": _cancel_encoders,
    "cancelled beside a broken disk": _cancel_encoders,
    "cancelled while publishing": _cancel_the_publishing,
    "paused": _pause_and_resume,
    "paused lists": _pause_and_resume,
    "paused at the end": _pause_the_check,
    **dict.fromkeys(paused_stories.STORIES, _pause_after_a_failure),
    **dict.fromkeys(paused_stories.CANCELLED, _cancel_after_a_failure),
    gpu_stories.PAUSED: _pause_and_resume,
    gpu_stories.PAUSED_BUSY: _pause_a_wait,
    gpu_stories.CANCELLED: _cancel_encoders,
    outgrown_stories.PAUSED: _pause_between_runs,
    outgrown_stories.CANCELLED: _cancel_between_runs,
}

STORIES = (
    "success",
    "retried",
    "drained",
    "later",
    "unreadable",
    "exhausted",
    "split",
    "anew",
    "broken",
    "a rung stays broken",
    "partial",
    "lists",
    "moved lists",
    "no storyboard",
    "remuxed",
    "gone",
    *REQUESTS,
    *(story for story in COMMANDS if story not in outgrown_stories.RECORDED),
    *(story for story in gpu_stories.STORIES if story not in {*REQUESTS, *COMMANDS}),
)


async def _dev_server(*config: str) -> WorkflowEnvironment:
    values = [word for value in (*DYNAMIC_CONFIG, *config) for word in ("--dynamic-config-value", value)]
    for again in (True, True, True, False):
        try:
            return await WorkflowEnvironment.start_local(
                data_converter=data_converter,
                dev_server_existing_path=str(temporal_binary()),
                dev_server_log_level="error",
                dev_server_extra_args=values,
                search_attributes=[
                    SearchAttributeKey.for_keyword(SEARCH_VIDEO_ID),
                    SearchAttributeKey.for_keyword(SEARCH_VIDEO_STATUS),
                    SearchAttributeKey.for_keyword(SEARCH_OWNER),
                    SearchAttributeKey.for_int(SEARCH_TIER),
                ],
            )
        except RuntimeError:  # the SDK waits five seconds and no more; a starved machine needs longer now and then
            if not again:
                raise
    raise AssertionError


@asynccontextmanager
async def temporal_for_stories(*config: str) -> AsyncIterator[Client]:
    """Run a Temporal of one's own, as embedded; `config` is added to its dynamic configuration."""
    environment = await _dev_server(*config)
    try:
        yield environment.client
    finally:
        await environment.shutdown()


@asynccontextmanager
async def telling(
    client: Client, steps: FakeSteps, *, slots: int | None = None, request: TranscodeRequest | None = None
) -> AsyncIterator[Handle]:
    """Serve all queues with fake steps, `slots` of them at a time, and start the story."""
    request = request or REQUESTS.get(steps.story, REQUEST)
    steps.temporal = client
    async with AsyncExitStack() as running:
        for queue, served in steps.by_queue().items():
            workflows = [TranscodeVideo, TranscodeList] if queue == TaskQueue.ORCHESTRATE else []
            worker = Worker(
                client,
                task_queue=queue,
                workflows=workflows,
                activities=served,
                interceptors=[FailureInterceptor(first_delay_s=0.05)],
                max_concurrent_activities=1 if queue == TaskQueue.GPU else slots,
                disable_eager_activity_execution=True,  # as the real ones
                workflow_runner=sandbox.SandboxedWorkflowRunner(),
                max_heartbeat_throttle_interval=timedelta(milliseconds=50),
            )
            await running.enter_async_context(worker)
        yield await client.start_workflow(
            TranscodeVideo.run,
            request,
            id=f"{workflow_id(request.video_id, request.job_id)}-{dashed(steps.story)}",
            task_queue=TaskQueue.ORCHESTRATE,
        )
