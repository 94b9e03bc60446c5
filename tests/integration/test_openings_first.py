"""Whoever waits to begin watching goes first: on a lone worker the lowest rung is not held up by the others."""

import asyncio
import time

from temporalio import activity
from temporalio.client import Client

from contracts.media import FrameRate
from contracts.plan import Capacity, Grid
from contracts.queues import Turn
from contracts.states import StepName
from contracts.steps import TranscodedSpan, TranscodeSpan
from media.spans import choose_lists, evenly
from tests.replay.fake_plans import PLAN
from tests.replay.fake_steps import FakeSteps
from tests.replay.stories import telling, temporal_for_stories

SLOTS = 2
SPANS, WINDOW = 12, 4
LOWEST = PLAN.renditions[-1].quality


class Paced(FakeSteps):
    """A step of the lowest rung ends when its list's window is full again, however slow the machine is."""

    def __init__(self, client: Client) -> None:
        super().__init__()
        self._client = client
        self._ended = 0
        # Twenty minutes in a dozen spans: the lowest rung has a list of its own.
        grid = Grid(frame_rate=FrameRate(num=30), frames=SPANS * 100 * 30, segment_frames=180)
        spans = evenly(grid.segments, SPANS)
        lists = choose_lists(PLAN.renditions, spans, grid, Capacity(workers=1, slots=SLOTS), share=True)
        second = PLAN.audio[0].model_copy(update={"track": 1, "default": False})
        self.planned = PLAN.model_copy(
            update={"grid": grid, "spans": spans, "lists": lists, "window": WINDOW, "audio": (*PLAN.audio, second)}
        )

    @activity.defn
    async def transcode_span(self, request: TranscodeSpan) -> TranscodedSpan:
        self.spans.append(request)
        info = activity.info()
        assert info.workflow_id is not None
        handle = self._client.get_workflow_handle(info.workflow_id)
        deadline = time.monotonic() + 20
        while request.step_qualities == (LOWEST,) and time.monotonic() < deadline:
            pending = (await handle.describe()).raw_description.pending_activities
            waiting = [each for each in pending if each.activity_id.endswith(f":{LOWEST}")]
            if len(waiting) >= min(WINDOW, SPANS - self._ended):
                break
            await asyncio.sleep(0.02)
        self._ended += request.step_qualities == (LOWEST,)
        return TranscodedSpan(segments=request.span.segments)


async def test_a_lone_worker_makes_the_lowest_rung_before_the_rest() -> None:
    async with temporal_for_stories() as client:
        steps = Paced(client)
        assert steps.planned.lists[0] == (LOWEST,)
        async with telling(client, steps, slots=SLOTS) as handle:
            assert (await handle.result()).status == "ready"
            history = await handle.fetch_history()
    order = [span.step_qualities == (LOWEST,) for span in steps.spans]
    assert len(order) == 2 * SPANS
    last = len(order) - 1 - order[::-1].index(True)
    assert order[:last].count(False) == 0, "".join("o" if opening else "." for opening in order)

    keys = {
        event.activity_task_scheduled_event_attributes.activity_id: event.activity_task_scheduled_event_attributes
        for event in history.events
        if event.HasField("activity_task_scheduled_event_attributes")
    }
    turns = {
        turn: {name for name, step in keys.items() if step.priority.fairness_key == f"/{turn}"} for turn in Turn if turn
    }
    lowest = [name for name in keys if name.endswith(f":{LOWEST}")]
    assert turns[Turn.OPENING] == set(lowest[:1])
    assert turns[Turn.AHEAD] == set(lowest[1:])
    assert turns[Turn.SOUND] == {"audio:0"} and "audio:1" in keys, "one sound is enough to begin"

    # In the first moment slots are free and take whatever comes: the rest is not even asked for yet.
    fired = next(event.event_id for event in history.events if event.HasField("timer_fired_event_attributes"))
    early = [
        event.activity_task_scheduled_event_attributes.activity_id
        for event in history.events[:fired]
        if event.HasField("activity_task_scheduled_event_attributes")
    ]
    begun = [name for name in early if name.startswith(StepName.TRANSCODE)]
    assert begun == lowest[:1], early
