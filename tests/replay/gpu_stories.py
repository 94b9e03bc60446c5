"""Stories in which a GPU worker looked idle when the plan was made, and what became of it."""

import asyncio
import contextlib
from collections.abc import Callable

from temporalio import activity

from contracts.errors import GpuBusy, GpuFailed
from contracts.plan import IdleGpu, PlannedRendition, Span, TranscodePlan
from contracts.queues import TaskQueue
from contracts.states import Codec
from contracts.steps import TranscodeSpan

GPU = IdleGpu(slots=1, encoders={Codec.H264: "h264_nvenc", Codec.HEVC: "hevc_nvenc"})

IDLE = "gpu idle"
SILENT = "gpu silent"  # it looked idle, and is gone
BUSY = "gpu busy"
FAILS = "gpu fails"  # in the middle, with spans of it stored
FAILS_LISTS = "gpu fails lists"
VANISHES = "gpu vanishes"  # with a step, and its slot with it
PAUSED = "gpu paused"
PAUSED_BUSY = "gpu busy in a pause"  # paused while a busy GPU is left alone
CANCELLED = "gpu cancelled"
RETRY = "gpu idle at a retry"  # of what the CPU began
# How long a step waits for a GPU: long where one takes it, however busy the machine that tells the story.
START_S = {SILENT: 0.5, BUSY: 4.0, VANISHES: 4.0}
STORIES = (IDLE, SILENT, BUSY, FAILS, FAILS_LISTS, VANISHES, PAUSED, PAUSED_BUSY, CANCELLED, RETRY)
HELD = (PAUSED, CANCELLED)


def planned(story: str, plan: TranscodePlan, long: TranscodePlan) -> TranscodePlan:
    """Give the plan of a story before it is known who is idle."""
    if story == FAILS_LISTS:
        return long
    renditions = plan.renditions
    if story in (IDLE, RETRY):
        other = PlannedRendition(quality="360p-hevc", width=640, height=360, video_kbps=400, codec=Codec.HEVC)
        renditions = (*renditions, other)
    halves = (Span(first_segment=0, segments=2), Span(first_segment=2, segments=2))
    lists = (("720p", "360p"), ("360p-hevc",)) if story in (IDLE, RETRY) else ()
    return plan.model_copy(
        update={"spans": halves, "gpu_start_s": START_S.get(story, 60.0), "renditions": renditions, "lists": lists}
    )


async def happen(story: str, request: TranscodeSpan, is_over: Callable[[], bool]) -> None:
    """Let a step on the GPU's queue go as the story says."""
    if activity.info().task_queue != TaskQueue.GPU:
        return
    begun = request.span.first_segment > 0
    if story == BUSY or (story == PAUSED_BUSY and not begun and request.generation == 0):
        raise GpuBusy("Every session of the GPU is taken.")
    if story in (FAILS, FAILS_LISTS) and begun:
        raise GpuFailed("The GPU's encoder failed.")
    if story == VANISHES and begun:
        await _hang(is_over)


async def _hang(is_over: Callable[[], bool]) -> None:
    """Hold a slot and say nothing until the story is over, whoever cancels it: a process that was stopped."""
    for _ in range(600):
        if not is_over():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.1)
