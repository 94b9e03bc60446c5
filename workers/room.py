"""A worker asks for more work only while it has room, and begins a step only when memory and disk are there.

Temporal reserves a slot before anybody knows what will fill it. So a worker asks for one step at a time, weighs what it
is given, and asks again while slots are left: a 4K encode leaves fewer than a 360p one. Memory is not stretched
like that: a step that does not fit waits, and nothing new is taken meanwhile, so that it will
(docs/decisions/0012-room-before-work.md).
"""

import asyncio
import contextlib
import weakref
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from weakref import WeakSet

from temporalio import activity
from temporalio.worker import (
    ActivityInboundInterceptor,
    CustomSlotSupplier,
    ExecuteActivityInput,
    Interceptor,
    SlotMarkUsedContext,
    SlotPermit,
    SlotReleaseContext,
    SlotReserveContext,
)

from activities.pulse import pulsing
from contracts.errors import Drained, ScratchFull, WorkerFull
from contracts.queues import share_of
from contracts.steps import StepRequest
from media.weights import Need, need_of

# At first another worker may have room for it. Told so again and again, it insists: this one empties for its sake.
PATIENCE_S = 20.0
LONGEST_PATIENCE_S = 300.0
# A full disk is looked at often at first; the longest waits let it stay full over a holiday.
LOOK_AGAIN_S = 5.0
LONGEST_LOOK_S = 900.0


class Room:
    """One per worker process: the memory its steps may hold, and the disk they write to. Of the event loop alone."""

    def __init__(
        self,
        memory_bytes: int,
        free_bytes: Callable[[], Awaitable[int]],
        *,
        reserve_bytes: int = 0,
        encoder_bytes: int | None = None,  # what one encoder is allowed, if not by the size of its pictures
    ) -> None:
        self._memory_bytes, self._free_bytes, self._reserve_bytes = memory_bytes, free_bytes, reserve_bytes
        self._encoder_bytes = encoder_bytes
        self._held: list[int] = []
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._lanes: WeakSet[Lane] = WeakSet()  # each goes with its Temporal worker

    def is_waited_for(self) -> bool:
        return bool(self._waiting)

    @asynccontextmanager
    async def given(self, need: Need, put_off: Mapping[str, int]) -> AsyncIterator[None]:
        """Hold what a step needs while it runs; raise a `later` error when it had better be somewhere else.

        `put_off` says how often it was told so before, by the code of why: who waited for memory, or was drained, is
        new to a full disk.
        """
        if need.scratch_bytes:
            await self._check_disk(need.scratch_bytes, put_off.get(ScratchFull.code, 0))
        if not need.memory_bytes:
            yield
            return
        memory = min(need.memory_bytes, self._encoder_bytes or need.memory_bytes)
        await self._take_memory(memory, put_off.get(WorkerFull.code, 0))
        try:
            yield
        finally:
            self._held.remove(memory)
            self._let_in()

    async def _check_disk(self, wanted: int, asked_before: int) -> None:
        # Nothing is set aside for those that run: a disk that fills up after all hands them back in the same way.
        free = max(0, await self._free_bytes() - self._reserve_bytes)
        if free < wanted:
            error = ScratchFull(
                f"The disk for work in progress has {_size(free)} to spare; this step may write {_size(wanted)}."
            )
            error.retry_after_s = _doubled(LOOK_AGAIN_S, asked_before, LONGEST_LOOK_S)
            raise error

    async def _take_memory(self, wanted: int, asked_before: int) -> None:
        # In order of coming: a large one is not passed over by small ones for ever.
        if not self._waiting and self._fits(wanted):
            self._held.append(wanted)
            return
        place = (wanted, asyncio.get_running_loop().create_future())
        self._waiting.append(place)
        try:
            await _patiently(place[1], _doubled(PATIENCE_S, asked_before, LONGEST_PATIENCE_S))
        except BaseException:
            if place[1].done() and not place[1].cancelled():  # let in at the very moment it gave up
                self._held.remove(wanted)
            else:
                self._waiting.remove(place)
            self._let_in()
            raise

    def _fits(self, wanted: int) -> bool:
        # What is larger than the whole worker runs alone rather than never.
        return not self._held or sum(self._held) + wanted <= self._memory_bytes

    def _let_in(self) -> None:
        while self._waiting and self._fits(self._waiting[0][0]):
            wanted, place = self._waiting.popleft()
            self._held.append(wanted)
            place.set_result(None)
        for lane in self._lanes:
            lane.look()

    def lane(self, slots: int, *, light: bool = False) -> "Lane":
        """Open a lane for the steps of one pool; light ones need no memory to speak of, and wait for nobody's."""
        made = Lane(self, slots, light=light)
        self._lanes.add(made)
        return made


class Lane(CustomSlotSupplier):
    """The slots of one pool: never more steps than there are, and fewer when they are large."""

    def __init__(self, room: Room, slots: int, *, light: bool = False) -> None:
        self._room, self._slots, self._light = room, slots, light
        self._loop = asyncio.get_running_loop()
        # No answer yet. Weakly: when a poller is stopped at the moment it is given one, nobody returns it.
        self._asking: WeakSet[SlotPermit] = WeakSet()
        self._running: set[SlotPermit] = set()
        self._weights: list[int] = []  # of those that have begun
        self._changed = asyncio.Event()
        self._turn = asyncio.Lock()

    @property
    def is_open(self) -> bool:
        return (
            not self._asking
            and self.has_room
            and len(self._running) == len(self._weights)  # one that has come and is not weighed yet comes first
            and (self._light or not self._room.is_waited_for())
        )

    @property
    def has_room(self) -> bool:
        return len(self._running) < self._slots and sum(self._weights) < self._slots

    def look(self) -> None:
        """Look again whether there is room."""
        self._changed.set()

    @contextmanager
    def weighed(self, slots: int) -> Iterator[None]:
        taken = share_of(self._slots, slots)
        self._weights.append(taken)
        self.look()
        try:
            yield
        finally:
            self._weights.remove(taken)
            self.look()

    # --- what Temporal's worker calls, the last three from threads of its own -----------------------------------

    async def reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit:
        async with self._turn:
            while not self.is_open:
                self._changed.clear()
                await self._changed.wait()
            permit = SlotPermit()
            self._asking.add(permit)
            weakref.finalize(permit, self._soon, self.look).atexit = False
            return permit

    def try_reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit | None:
        return None  # for eager steps, which would jump the queue

    def mark_slot_used(self, ctx: SlotMarkUsedContext) -> None:
        self._soon(self._begun, ctx.permit)

    def release_slot(self, ctx: SlotReleaseContext) -> None:
        self._soon(self._ended, ctx.permit)

    def _soon(self, change: Callable[..., None], *permit: SlotPermit) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody asks any more
            self._loop.call_soon_threadsafe(change, *permit)

    def _begun(self, permit: SlotPermit) -> None:
        self._asking.discard(permit)
        self._running.add(permit)
        self.look()  # its step may have been weighed already, while it still counted as asked for

    def _ended(self, permit: SlotPermit) -> None:
        self._asking.discard(permit)
        self._running.discard(permit)
        self.look()


class RoomInterceptor(Interceptor):
    """Weighs every step of a pool, and lets it begin when there is room. The innermost: its errors are translated."""

    def __init__(self, room: Room, lane: Lane | None = None) -> None:
        self._room, self._lane = room, lane

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Weighed(next, self._room, self._lane)


class _Weighed(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, room: Room, lane: Lane | None) -> None:
        super().__init__(next)
        self._room, self._lane = room, lane

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        request = input.args[0] if input.args else None
        need = need_of(request)
        put_off = request.put_off if isinstance(request, StepRequest) else {}
        with self._lane.weighed(need.slots) if self._lane else contextlib.nullcontext():
            async with self._room.given(need, put_off):
                return await self.next.execute_activity(input)


async def _patiently(place: asyncio.Future[None], patience_s: float) -> None:
    """Wait to be let in, alive all the while; give up when the worker drains, or when patience ends."""
    drained = asyncio.create_task(activity.wait_for_worker_shutdown())
    try:
        async with pulsing():
            await asyncio.wait({place, drained}, timeout=patience_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        drained.cancel()
    if place.done():
        return
    if activity.is_worker_shutdown():
        raise Drained("The worker was stopped.")
    raise WorkerFull("This worker has no memory to spare for the step just now.")


def _doubled(first_s: float, times: int, longest_s: float) -> float:
    return min(longest_s, first_s * 2.0 ** min(times, 30))


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.0f} MB"
