"""A workflow whose history has grown long goes on in a new run: nothing that was used, said or lost is forgotten."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from temporalio import workflow
from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError, WorkflowUpdateStage
from temporalio.exceptions import ApplicationError, CancelledError

from contracts.end_steps import FailJob, Finalize
from contracts.states import Tier
from contracts.steps import SetPriority
from tests.replay import outgrown_stories
from tests.replay.fake_steps import FakeSteps
from tests.replay.stories import COMMANDS, Handle, has_heard_of_the_cancel, telling
from tests.support.eventually import eventually
from tests.support.shared_temporal import shared_temporal
from workflows import stepping
from workflows.children import Children
from workflows.transcode_video import TranscodeVideo


@asynccontextmanager
async def outgrowing(story: str) -> AsyncIterator[tuple[Client, FakeSteps, Handle]]:
    steps = FakeSteps(story)
    with outgrown_stories.hurried(story):
        async with shared_temporal(outgrown_stories.CONFIG) as client, telling(client, steps) as handle:
            yield client, steps, handle


async def end_of(handle: Handle) -> str:
    """Say how it ended: a status, "cancelled", or the code of its failure."""
    try:
        return (await asyncio.wait_for(handle.result(), 60)).status
    except WorkflowFailureError as error:
        if isinstance(error.cause, CancelledError):
            return "cancelled"
        assert isinstance(error.cause, ApplicationError)
        return error.cause.type or ""


@pytest.mark.parametrize("story", outgrown_stories.STORIES)
async def test_a_full_disk_is_waited_for_without_end_and_without_an_endless_history(story: str) -> None:
    """The workflow that waits goes on in a new run: the job's own, and those of its lists."""
    async with outgrowing(story) as (client, steps, handle):
        if command := COMMANDS.get(story):
            await asyncio.wait_for(command(handle, steps), 60)
        assert await end_of(handle) == "ready"
        told = [client.get_workflow_handle(name, run_id=run) for run, name in steps.runs.items()]
        events = [len((await run.fetch_history()).events) for run in told]
    assert [run.id for run in told].count(handle.id) == steps.calls.count("plan") == 2
    assert max(events) < 500
    assert steps.numbers_are_used_once() and not any(span.tries_before for span in steps.spans)
    assert isinstance(steps.ended, Finalize) and set(steps.ended.qualities) == {"720p", "360p"}
    if story == outgrown_stories.LISTS:  # for as long as they went on the sound did not ask
        assert steps.calls.count("audio") < 8 < steps.sent_away
        assert len(told) > 2 + 2 * 2  # each of the lists, for either run of the job, and in runs of their own
    if story == outgrown_stories.PAUSED:
        later = steps.calls[steps.calls.index("resume") :]
        assert later[1] == "plan" and "remux" not in later and later[-1].startswith("drop")
        assert {span.source_key for span in steps.spans} == {"remuxed/1-1.mkv"}


async def test_commands_reach_a_list_that_has_gone_on_in_a_new_run() -> None:
    """A pause that it did not hear would be none; a resume that it did not hear would be its end."""
    async with outgrowing(outgrown_stories.COMMANDED) as (client, steps, handle):

        async def has_gone_on() -> bool:
            return [*steps.runs.values()].count(f"{handle.id}-360p") > 1

        await eventually(has_gone_on, within=60)
        await handle.execute_update(TranscodeVideo.pause)
        child = client.get_workflow_handle(f"{handle.id}-360p")

        async def is_still() -> bool:
            described = await child.describe()
            return (
                described.status is WorkflowExecutionStatus.RUNNING and not described.raw_description.pending_activities
            )

        await eventually(is_still, within=20)
        asked = len(steps.spans)
        await asyncio.sleep(2)  # longer than it lets the opening go first, or waits before it asks again
        assert len(steps.spans) == asked, "it is paused"
        steps.let_go = True
        await handle.execute_update(TranscodeVideo.resume)
        assert await end_of(handle) == "ready"


async def test_tries_count_over_runs_however_the_plan_cuts_the_work_anew() -> None:
    """Two tries are allowed: one was used before the disk was full, so one is left in the run that goes on."""
    async with outgrowing(outgrown_stories.TIRED) as (_, steps, handle):
        assert await end_of(handle) == "RETRIES_EXHAUSTED"
    assert steps.calls.count("plan") == 2
    later = [span for span in steps.spans if span.span.segments == 2]
    assert later and {span.tries_before for span in later} == {1}
    assert len(later) == len({span.step_key for span in later}), "each was tried once more, and no more"


async def test_what_was_lost_before_is_missing_and_not_tried_again() -> None:
    async with outgrowing(outgrown_stories.LOST) as (_, steps, handle):
        assert await end_of(handle) == "ready"
    assert steps.calls.count("plan") == 2
    assert isinstance(steps.ended, Finalize) and steps.ended.qualities == ("360p",)
    missing = {(each.name, each.code) for each in steps.ended.missing}
    assert missing == {("audio_1", "SOURCE_UNREADABLE"), ("720p", "RETRIES_EXHAUSTED")}
    # Both tracks of sound in the first run, the one that goes on in the second; of the list its one try and the part's.
    assert steps.calls.count("audio") == 3
    assert sum("720p" in span.step_qualities for span in steps.spans) == 2
    assert steps.spans[-1].step_qualities == ("360p",) and steps.spans[-1].tries_before == 1


# --- a cancel that comes in the moment before -----------------------------------------------------------------------


async def is_cancelled_with_its_end_written(steps: FakeSteps, handle: Handle) -> None:
    assert await end_of(handle) == "cancelled"
    assert [call for call in steps.calls if not call.startswith("drop")][-2:] == ["remove", "fail"]
    assert isinstance(steps.ended, FailJob) and steps.ended.code == "CANCELLED"
    assert steps.calls.count("plan") == 1, "no new run has begun"


async def test_a_cancel_while_it_stops_to_go_on_is_written() -> None:
    async with outgrowing(outgrown_stories.CANCELLED) as (_, steps, handle):
        await asyncio.wait_for(COMMANDS[outgrown_stories.CANCELLED](handle, steps), 60)
        await is_cancelled_with_its_end_written(steps, handle)
    assert steps.calls[-1].startswith("drop")


async def test_a_cancel_while_a_list_stops_to_go_on_reaches_it() -> None:
    async with outgrowing(outgrown_stories.CANCELLED_LISTS) as (client, steps, handle):
        await asyncio.wait_for(steps.stopping.wait(), 60)
        await handle.cancel()
        # Whichever list is about to go on: both were asked to stop.
        for name in ("360p", "720p"):
            child = client.get_workflow_handle(f"{handle.id}-{name}")
            await eventually(lambda child=child: has_heard_of_the_cancel(child), within=20)  # type: ignore[misc]
        steps.paused.set()
        await is_cancelled_with_its_end_written(steps, handle)


@pytest.fixture
def decided(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Is set when the workflow has found that it has outgrown its history."""
    found, is_outgrown = threading.Event(), stepping._is_outgrown

    def asked(patience: Any) -> bool:
        outgrown = is_outgrown(patience)
        if outgrown:
            found.set()
        return outgrown

    monkeypatch.setattr(stepping, "_is_outgrown", asked)
    return found


async def test_a_cancel_while_the_last_command_is_answered_is_written(
    monkeypatch: pytest.MonkeyPatch, decided: threading.Event
) -> None:
    """Before it goes on it waits for whoever it has not answered yet: here for somebody who waits for the cancel."""

    async def slowly(_children: Children, *_said: Any) -> None:
        await workflow.wait_condition(lambda: workflow.cancellation_reason() is not None)

    monkeypatch.setattr(Children, "tell", slowly)
    async with outgrowing(outgrown_stories.DAYS) as (_, steps, handle):
        wish = SetPriority(tier=Tier.VIRAL)
        await handle.start_update(TranscodeVideo.set_priority, wish, wait_for_stage=WorkflowUpdateStage.ACCEPTED)
        assert await asyncio.to_thread(decided.wait, 60)

        async def waits() -> bool:
            last = (await handle.fetch_history()).events[-1]
            return last.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED

        await eventually(waits, within=20)
        assert steps.calls.count("plan") == 1
        await handle.cancel()
        await is_cancelled_with_its_end_written(steps, handle)


async def test_a_cancel_that_comes_when_the_new_run_is_being_asked_for_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Temporal refuses to go on from a run that has not heard of it, and asks that one again."""
    # A workflow that stands still for a moment is no deadlock here. It runs in our own loop then, which stands still as
    # well: the cancel comes from a thread that has a loop of its own.
    monkeypatch.setenv("TEMPORAL_DEBUG", "1")
    is_outgrown = stepping._is_outgrown
    running: list[tuple[Client, Handle]] = []

    def cancel(client: Client, handle: Handle) -> None:
        async def tell() -> None:
            other = await Client.connect(client.service_client.config.target_host, namespace=client.namespace)
            await other.get_workflow_handle(handle.id).cancel()

        asyncio.run(tell())

    def asked(patience: Any) -> bool:
        outgrown = is_outgrown(patience)
        if outgrown and running:
            telling = threading.Thread(target=cancel, args=running.pop())
            telling.start()
            telling.join(8)  # Temporal gives it ten seconds
        return outgrown

    monkeypatch.setattr(stepping, "_is_outgrown", asked)
    async with outgrowing(outgrown_stories.DAYS) as (client, steps, handle):
        running.append((client, handle))
        await is_cancelled_with_its_end_written(steps, handle)
        events = (await handle.fetch_history()).events
    refused = [event.workflow_task_failed_event_attributes.cause for event in events]
    assert WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND in refused, "the moment was missed"
