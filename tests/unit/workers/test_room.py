"""Who may begin, who waits, and who is sent elsewhere: memory and disk, one step at a time."""

import asyncio
import gc
from collections.abc import Mapping
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment
from temporalio.worker import (
    ActivityInboundInterceptor,
    ExecuteActivityInput,
    SlotMarkUsedContext,
    SlotReleaseContext,
)

from contracts.errors import Drained, FailureKind, ScratchFull, WorkerFull
from contracts.ids import JobId, ObjectKey, VideoId
from contracts.steps import Probe
from media.weights import Need
from workers import room as rooms
from workers.room import Lane, Room, RoomInterceptor


async def plenty() -> int:
    return 1 << 50


class Step:
    """A step in an activity of its own; it runs until it is told to end."""

    def __init__(self, room: Room, need: Need, put_off: Mapping[str, int] | None = None) -> None:
        self.running, self.end = asyncio.Event(), asyncio.Event()
        self.environment = ActivityEnvironment()
        self.beats = 0

        def beat(*_: Any) -> None:
            self.beats += 1

        self.environment.on_heartbeat = beat
        self.task = asyncio.create_task(self.environment.run(self._run, room, need, put_off or {}))

    async def _run(self, room: Room, need: Need, put_off: Mapping[str, int]) -> None:
        async with room.given(need, put_off):
            self.running.set()
            await self.end.wait()

    async def ended(self) -> None:
        self.end.set()
        await self.task


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def of(memory_bytes: int) -> Need:
    return Need(memory_bytes=memory_bytes)


async def test_what_does_not_fit_waits_alive_and_small_ones_do_not_pass_it() -> None:
    room = Room(10, plenty)
    first, large, small = Step(room, of(6)), Step(room, of(8)), Step(room, of(1))
    await settled()
    assert first.running.is_set() and not large.running.is_set() and not small.running.is_set()
    assert large.beats and room.is_waited_for()
    await first.ended()
    await settled()
    assert large.running.is_set() and small.running.is_set() and not room.is_waited_for()
    await large.ended()
    await small.ended()


async def test_what_is_larger_than_the_worker_runs_alone_rather_than_never() -> None:
    room = Room(10, plenty)
    first, giant, next_one = Step(room, of(1)), Step(room, of(99)), Step(room, of(1))
    await settled()
    assert not giant.running.is_set()
    await first.ended()
    await settled()
    assert giant.running.is_set() and not next_one.running.is_set()
    await giant.ended()
    await settled()
    assert next_one.running.is_set()
    await next_one.ended()


async def test_no_step_counts_for_more_than_its_encoder_is_allowed() -> None:
    room = Room(10, plenty, encoder_bytes=5)
    first, second, third = (Step(room, of(99)) for _ in range(3))
    await settled()
    assert first.running.is_set() and second.running.is_set() and not third.running.is_set()
    for step in (first, second, third):
        await step.ended()


async def test_what_needs_no_memory_never_waits() -> None:
    room = Room(10, plenty)
    giant, waiting, light = Step(room, of(99)), Step(room, of(1)), Step(room, Need())
    await settled()
    assert light.running.is_set() and not waiting.running.is_set()
    for step in (light, giant, waiting):
        await step.ended()


async def test_a_cancelled_wait_leaves_its_place_to_the_next() -> None:
    room = Room(10, plenty)
    first, large, small = Step(room, of(6)), Step(room, of(8)), Step(room, of(4))
    await settled()
    large.task.cancel()
    await settled()
    assert large.task.cancelled() and small.running.is_set()
    await first.ended()
    await small.ended()
    assert not room.is_waited_for()


async def test_a_step_that_is_let_in_while_it_is_cancelled_gives_its_memory_back() -> None:
    room = Room(10, plenty)
    first, second = Step(room, of(8)), Step(room, of(8))
    await settled()
    first.end.set()
    while not first.task.done():
        await asyncio.sleep(0)
    second.task.cancel()
    await settled()
    third = Step(room, of(10))
    await settled()
    assert second.task.cancelled() and third.running.is_set()
    await third.ended()


async def test_a_draining_worker_hands_back_who_waits_at_once() -> None:
    room = Room(10, plenty)
    first, waiting = Step(room, of(8)), Step(room, of(8))
    await settled()
    waiting.environment.worker_shutdown()
    with pytest.raises(Drained):
        await waiting.task
    await first.ended()
    assert not room.is_waited_for()


async def test_patience_ends_and_costs_no_attempt_and_is_longer_the_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooms, "PATIENCE_S", 0.05)
    room = Room(10, plenty)
    first = Step(room, of(8))
    await settled()
    impatient, insistent = Step(room, of(8)), Step(room, of(8), {"WORKER_FULL": 12})
    with pytest.raises(WorkerFull) as caught:
        await impatient.task
    assert caught.value.kind is FailureKind.LATER and caught.value.retry_after_s > 0
    assert not insistent.task.done()
    await first.ended()
    await settled()
    assert insistent.running.is_set()
    await insistent.ended()


async def test_a_full_disk_is_told_with_sizes_and_looked_at_less_and_less_often() -> None:
    free = 1_000

    async def left() -> int:
        return free

    room = Room(10, left, reserve_bytes=400)
    waits = []
    for asked_before in (0, 1, 2, 500):
        with pytest.raises(ScratchFull) as caught:
            await Step(room, Need(scratch_bytes=601), {"SCRATCH_FULL": asked_before, "WORKER_FULL": 9}).task
        waits.append(caught.value.retry_after_s)
    assert waits == [5, 10, 20, 900], "by how often the disk was full, and by nothing else"
    assert caught.value.kind is FailureKind.LATER
    fitting = Step(room, Need(scratch_bytes=600))
    await settled()
    assert fitting.running.is_set()
    await fitting.ended()


class Works(ActivityInboundInterceptor):
    def __init__(self) -> None:
        pass

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        return None


async def test_a_step_that_was_drained_often_is_new_to_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing() -> int:
        return 0

    monkeypatch.setattr(rooms, "need_of", lambda _: Need(scratch_bytes=1))
    step = RoomInterceptor(Room(10, nothing)).intercept_activity(Works())
    waits = []
    for put_off in ({}, {"SCRATCH_FULL": 2}):
        request = Probe(job_id=JobId(1), video_id=VideoId(1), source_key=ObjectKey("x"), generation=30, put_off=put_off)
        given = ExecuteActivityInput(fn=lambda: None, args=[request], executor=None, headers={})
        with pytest.raises(ScratchFull) as caught:
            await step.execute_activity(given)
        waits.append(caught.value.retry_after_s)
    assert waits == [5, 20]


# --- the slots of a pool ------------------------------------------------------------------------------------------


class Asking:
    """Temporal's worker, as it asks for slots: one poller."""

    def __init__(self, lane: Lane) -> None:
        self.lane = lane

    async def given(self) -> Any:
        return await asyncio.wait_for(self.lane.reserve_slot(None), 5)  # type: ignore[arg-type]

    async def is_refused(self) -> bool:
        asked = asyncio.create_task(self.lane.reserve_slot(None))  # type: ignore[arg-type]
        await settled()
        if asked.done():
            self.lane.release_slot(SlotReleaseContext(slot_info=None, permit=asked.result()))
            await settled()
            return False
        asked.cancel()
        await settled()
        return True

    async def begun(self, permit: Any) -> None:
        class Used:
            pass

        used: Any = Used()
        used.permit = permit
        context: SlotMarkUsedContext = used
        self.lane.mark_slot_used(context)
        await settled()

    async def released(self, permit: Any) -> None:
        self.lane.release_slot(SlotReleaseContext(slot_info=None, permit=permit))
        await settled()


async def test_one_question_at_a_time_and_the_answer_is_weighed_first() -> None:
    asking = Asking(Room(10, plenty).lane(4))
    permit = await asking.given()
    assert await asking.is_refused()
    await asking.begun(permit)
    assert await asking.is_refused(), "nobody knows yet how much of the worker it takes"
    with asking.lane.weighed(1):
        assert not await asking.is_refused()


@pytest.mark.parametrize("weight, most", [(1, 4), (2, 2), (3, 2), (9, 2)])
async def test_large_steps_leave_fewer_slots_and_always_one(weight: int, most: int) -> None:
    lane = Room(10, plenty).lane(4)
    asking, open_now = Asking(lane), []
    for _ in range(most):
        await asking.begun(await asking.given())
        held = lane.weighed(weight)
        held.__enter__()
        open_now.append(held)
    assert await asking.is_refused()
    for held in open_now:
        held.__exit__(None, None, None)


async def test_a_step_that_never_began_frees_its_slot() -> None:
    asking = Asking(Room(10, plenty).lane(1))
    permit = await asking.given()
    await asking.begun(permit)
    assert await asking.is_refused()
    await asking.released(permit)
    assert not await asking.is_refused()


async def test_a_step_that_was_weighed_before_its_slot_is_marked_used_holds_up_nobody() -> None:
    """The step begins on our loop; that its slot is used is said by a thread of Temporal's, now before, now after."""
    asking = Asking(Room(10, plenty).lane(2))
    permit = await asking.given()
    with asking.lane.weighed(1):
        following = asyncio.create_task(asking.given())
        await settled()
        assert not following.done()
        await asking.begun(permit)
        await following


async def test_a_slot_that_was_given_to_nobody_is_free_again() -> None:
    asking = Asking(Room(10, plenty).lane(1))
    permit = await asking.given()
    following = asyncio.create_task(asking.given())
    await settled()
    assert not following.done()
    del permit  # the poller was stopped at this very moment
    gc.collect()
    await following


async def test_while_somebody_waits_for_memory_nothing_new_is_taken() -> None:
    room = Room(10, plenty)
    lane, other = room.lane(4), room.lane(4)
    first, waiting = Step(room, of(8)), Step(room, of(8))
    await settled()
    asked = [asyncio.create_task(each.reserve_slot(None)) for each in (lane, other)]  # type: ignore[arg-type]
    await settled()
    assert not any(each.done() for each in asked)
    await first.ended()
    await asyncio.wait_for(asyncio.gather(*asked), 5)
    await waiting.ended()
