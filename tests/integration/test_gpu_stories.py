"""What the workflow does with a GPU, on a real Temporal with steps that only answer."""

import asyncio

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import CancelledError

from contracts.end_steps import FailJob, Finalize
from contracts.queues import TaskQueue
from contracts.steps import TranscodeSpan
from tests.replay import gpu_stories
from tests.replay.fake_steps import FakeSteps
from tests.replay.stories import COMMANDS, Handle, telling
from tests.support.shared_temporal import shared_temporal

GPU, CPU = TaskQueue.GPU, TaskQueue.CPU


async def told(story: str) -> tuple[FakeSteps, Handle, list[EventType.ValueType]]:
    """Tell a story to its end; give its steps, and the kinds of events in its history."""
    steps = FakeSteps(story)
    async with shared_temporal() as client, telling(client, steps) as handle:
        if command := COMMANDS.get(story):
            await asyncio.wait_for(command(handle, steps), 120)
        result = await handle.result()
        assert result.status == "ready"
        return steps, handle, [event.event_type for event in (await handle.fetch_history()).events]


def made(steps: FakeSteps, quality: str) -> list[tuple[str, int, int]]:
    """Tell where, in which generation, and of which first segment the spans of a quality were encoded.

    A GPU's as they came; the CPU's, which run side by side, sorted after them.
    """
    found = [
        (queue, next(r.generation for r in span.renditions if r.quality == quality), span.span.first_segment)
        for queue, span in zip(steps.queues, steps.spans, strict=True)
        if quality in span.step_qualities
    ]
    return [each for each in found if each[0] == GPU] + sorted(each for each in found if each[0] != GPU)


def on_gpu(steps: FakeSteps) -> list[TranscodeSpan]:
    return [span for queue, span in zip(steps.queues, steps.spans, strict=True) if queue == GPU]


async def test_an_idle_gpu_takes_the_largest_rung_and_the_one_that_begins_to_play_stays_on_the_cpu() -> None:
    steps, _, events = await told(gpu_stories.IDLE)
    assert made(steps, "720p") == [(GPU, 0, 0), (GPU, 0, 2)]
    assert {queue for queue, *_ in made(steps, "360p")} == {CPU}
    # The codec beside H.264 was routed when its turn came, and the slot was free again.
    assert made(steps, "360p-hevc") == [(GPU, 0, 0), (GPU, 0, 2)]
    assert {span.renditions[0].encoder for span in on_gpu(steps)} == {"h264_nvenc", "hevc_nvenc"}
    assert all(len(span.renditions) == 1 for span in on_gpu(steps))
    assert EventType.EVENT_TYPE_TIMER_STARTED not in events


async def test_without_a_gpu_nothing_waits_and_nothing_more_is_asked() -> None:
    steps, _, events = await told("success")
    assert set(steps.queues) == {CPU}
    assert [call for call in steps.calls if call.startswith("plan")] == ["plan"]
    assert EventType.EVENT_TYPE_TIMER_STARTED not in events


async def test_what_no_gpu_begins_in_time_is_the_cpus() -> None:
    steps, _, events = await told(gpu_stories.SILENT)
    assert made(steps, "720p") == [(CPU, 1, 0), (CPU, 1, 2)]
    [lost] = [plan.descends for plan in steps.plans if plan.descends]
    assert (lost.name, lost.code) == ("720p", "GPU_NOT_TAKEN")
    assert EventType.EVENT_TYPE_TIMER_STARTED not in events  # the queue itself keeps the time


async def test_a_gpu_that_stays_busy_is_asked_twice_and_costs_no_try() -> None:
    steps, _, _ = await told(gpu_stories.BUSY)
    assert made(steps, "720p") == [(GPU, 0, 0), (GPU, 0, 0), (CPU, 1, 0), (CPU, 1, 2)]
    assert [span.generation for span in on_gpu(steps)] == [0, 1]
    assert not any(span.tries_before for span in steps.spans)


@pytest.mark.parametrize("story", [gpu_stories.FAILS, gpu_stories.FAILS_LISTS])
async def test_what_a_gpu_fails_in_the_middle_begins_anew_on_the_cpu_as_a_whole(story: str) -> None:
    steps, _, _ = await told(story)
    spans = len(steps.planned.spans)
    tried = made(steps, "720p")
    # Stored by the GPU, failed by it once, and then every span under the next generation.
    assert tried[:2] == [(GPU, 0, 0), (GPU, 0, 2)]
    assert tried[2:] == [(CPU, 1, 2 * n) for n in range(spans)]
    assert not any(span.tries_before for span in steps.spans)
    anew = [span.renditions[0] for span in steps.spans if span.renditions[0].generation]
    assert {(r.encoder, r.gpu, bool(r.ffmpeg)) for r in anew} == {("libx264", False, True)}
    assert isinstance(steps.ended, Finalize) and set(steps.ended.qualities) == {"720p", "360p"}
    [whole] = [r for r in steps.verified[-1].plan.renditions if r.quality == "720p"]
    assert (whole.generation, whole.gpu, whole.descended) == (1, False, "The GPU's encoder failed.")


async def test_a_gpu_worker_that_vanishes_with_its_slot_is_waited_for_once_more() -> None:
    steps, _, _ = await told(gpu_stories.VANISHES)
    assert made(steps, "720p") == [(GPU, 0, 0), (GPU, 0, 2), (CPU, 1, 0), (CPU, 1, 2)]
    [lost] = [plan.descends for plan in steps.plans if plan.descends]
    assert lost.code == "GPU_NOT_TAKEN"


async def test_a_pause_takes_a_step_back_from_the_gpu_and_it_goes_on_there() -> None:
    steps, _, _ = await told(gpu_stories.PAUSED)
    assert made(steps, "720p") == [(GPU, 0, 0), (GPU, 0, 0), (GPU, 0, 2)]
    assert [(span.generation, span.tries_before) for span in on_gpu(steps)] == [(0, 0), (1, 0), (0, 0)]


async def test_a_pause_ends_the_wait_for_a_busy_gpu_and_its_time_is_not_counted() -> None:
    steps, _, events = await told(gpu_stories.PAUSED_BUSY)
    assert made(steps, "720p") == [(GPU, 0, 0), (GPU, 0, 0), (GPU, 0, 2)]
    assert [(span.generation, span.tries_before) for span in on_gpu(steps)] == [(0, 0), (1, 0), (0, 0)]
    assert EventType.EVENT_TYPE_TIMER_CANCELED in events and EventType.EVENT_TYPE_TIMER_FIRED not in events


async def test_what_the_cpu_began_stays_there_although_a_gpu_is_idle_when_its_turn_comes() -> None:
    steps, _, _ = await told(gpu_stories.RETRY)
    assert steps.plans[-1].routes == ("360p-hevc",)
    assert set(steps.queues) == {CPU}
    assert {(r.quality, r.generation) for span in steps.spans for r in span.renditions} == {
        ("720p", 0),
        ("360p", 0),
        ("360p-hevc", 0),
    }


async def test_a_cancel_reaches_what_a_gpu_encodes() -> None:
    steps = FakeSteps(gpu_stories.CANCELLED)
    async with shared_temporal() as client, telling(client, steps) as handle:
        await asyncio.wait_for(COMMANDS[steps.story](handle, steps), 120)
        with pytest.raises(WorkflowFailureError) as failed:
            await handle.result()
    assert isinstance(failed.value.cause, CancelledError)
    assert isinstance(steps.ended, FailJob) and steps.ended.code == "CANCELLED"
    assert not any(plan.descends for plan in steps.plans)
