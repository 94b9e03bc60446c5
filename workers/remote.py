"""A worker that reaches nothing but the API: it asks for steps there, runs them, and hands back what it cannot end."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from temporalio.worker import SlotMarkUsedContext, SlotPermit, SlotReleaseContext, SlotReserveContext

from activities.failures import FailureInterceptor
from contracts.errors import VlogError
from contracts.gateway import MOST_WAIT_S
from contracts.queues import ENCODERS, Pool
from media.gpu import Gpu
from media.tools import Toolbox
from runtime.names import SettingsError
from runtime.settings import Settings
from storage.cache import Cache
from storage.http import HttpStore
from storage.http_calls import Refused, Waits
from storage.local import LocalStore
from workers.build import encoding_steps, probing_steps
from workers.quarantine import Quarantine
from workers.remote_api import ClaimedStep, RemoteApi
from workers.remote_notes import RemoteNotes
from workers.remote_step import RemoteStepRun
from workers.room import Lane, Room, RoomInterceptor
from workers.self_test import test_encode, test_gpu

log = logging.getLogger(__name__)

LEAST_POLL_S = 1.0  # an empty answer that comes sooner is not worth the next question at once
LEAVE_S = 5.0
IDLE = "idle"
MOST_SILENT = 10  # beats in a row: five minutes
NOT_YET = "The API has not welcomed this worker yet."


class KeyRefused(SettingsError):
    """The API does not know this key, or not any more: it needs a new one."""


@dataclass(frozen=True)
class _Held:
    """What a lane wants to know of a step that began or ended."""

    permit: SlotPermit


@dataclass(frozen=True)
class Kit:
    """What the steps of this machine are made with."""

    settings: Settings
    tools: Toolbox
    gpu: Gpu
    work: LocalStore
    cache: Cache


class RemoteWorker:
    def __init__(
        self, api: RemoteApi, kit: Kit, room: Room, slots: dict[Pool, int], failures: FailureInterceptor
    ) -> None:
        self._api, self._kit, self._room, self._failures = api, kit, room, failures
        self._lanes = {pool: room.lane(count, light=pool not in ENCODERS) for pool, count in slots.items()}
        self._running: dict[asyncio.Task[None], RemoteStepRun] = {}
        self._open = {pool: asyncio.Event() for pool in slots}  # those that are asked for
        self._asking: dict[Pool, asyncio.Task[ClaimedStep | None]] = {}
        self._shut_out = NOT_YET
        self._aside: Mapping[Pool, str] = {}
        self._beat_now = asyncio.Event()
        self._notes = RemoteNotes(api, self._status)
        self.quarantine = Quarantine(
            self._notes,
            slots,
            self._set_aside,
            encode=partial(test_encode, kit.work, kit.tools),
            encode_on_device=partial(test_gpu, kit.tools, kit.gpu, kit.settings.gpu_device or ""),
            first_wait_s=kit.settings.quarantine_seconds,
        )

    async def run(self, stopping: asyncio.Event, described: dict[str, Any]) -> None:
        """Work until told to stop, then drain. Raises KeyRefused."""
        beating = asyncio.create_task(self._beat(described))
        testing = asyncio.create_task(self.quarantine.run())
        asking = [asyncio.create_task(self._ask(pool, lane)) for pool, lane in self._lanes.items()]
        stop = asyncio.create_task(stopping.wait())
        try:
            await asyncio.wait([stop, beating, *asking], return_when=asyncio.FIRST_COMPLETED)
            # Hanging up is enough: what was on its way here goes back to the queue.
            for task in asking:
                task.cancel()
            if not beating.done():
                await self._drain()
            elif self._running:  # its key is good for nothing but to hand back what it has, which it does just now
                await asyncio.wait(self._running, timeout=LEAVE_S)
        finally:
            stop.cancel()
            beating.cancel()
            testing.cancel()
            for task in asking:
                task.cancel()
        if beating.done() and not beating.cancelled():
            beating.result()
        for ended in await asyncio.gather(*asking, return_exceptions=True):
            if isinstance(ended, Exception):
                raise ended
        with contextlib.suppress(VlogError, TimeoutError):
            async with asyncio.timeout(LEAVE_S):
                await self._api.beat("offline")

    async def _drain(self) -> None:
        if self._running:
            log.info("draining")
            for step in self._running.values():
                step.drain()
            await asyncio.wait(self._running, timeout=self._kit.settings.drain_seconds)
        if self._running:
            self._failures.hand_back_now()
            await asyncio.wait(self._running)

    # --- asking -------------------------------------------------------------------------------------------------

    async def _ask(self, pool: Pool, lane: Lane) -> None:
        """Ask for one step after the other while there is room; what is given runs beside."""
        waits = Waits()
        while True:
            await self._open[pool].wait()
            permit = await lane.reserve_slot(cast(SlotReserveContext, None))
            claimed, began = None, time.monotonic()
            try:
                claimed = await self._claim(pool)
                waits = Waits()
            except Refused as error:
                self.refused(error)
                await waits.once()
            except VlogError as error:
                log.warning("no work: %s", error.sentence)
                await waits.once()
            finally:
                if claimed is None:
                    lane.release_slot(cast(SlotReleaseContext, _Held(permit)))
            if claimed is not None:
                lane.mark_slot_used(cast(SlotMarkUsedContext, _Held(permit)))
                self._begin(claimed, lane, permit)
            elif time.monotonic() - began < LEAST_POLL_S:
                await asyncio.sleep(LEAST_POLL_S)

    async def _claim(self, pool: Pool) -> ClaimedStep | None:
        """Wait for a step, longer than a heartbeat; hang up when the pool is closed meanwhile."""
        if not self._open[pool].is_set():  # closed while it had no room
            return None
        asking = self._asking[pool] = asyncio.create_task(self._api.claim(pool, MOST_WAIT_S))
        try:
            return await asking
        except asyncio.CancelledError:
            us = asyncio.current_task()
            if us is None or us.cancelling():  # it is this worker that ends
                raise
            return None

    def _begin(self, claimed: ClaimedStep, lane: Lane, permit: SlotPermit) -> None:
        log.info("%s of job %d, attempt %d", claimed.step_key, claimed.job_id, claimed.attempt)
        kit = self._kit
        store = HttpStore(self._api.calls, claimed.claim, kit.work, kit.cache)
        settings = kit.settings.model_copy(update=claimed.limits.model_dump() if claimed.limits else {})
        served = (
            *encoding_steps(settings, store, kit.tools, kit.gpu),
            *probing_steps(settings, store, kit.tools),
        )
        steps = {step.__name__: step for step in served}
        run = RemoteStepRun(
            self._api,
            claimed,
            steps.get(claimed.activity),
            [self._failures, RoomInterceptor(self._room, lane)],
            self.refused,
        )
        task = asyncio.create_task(run.run())
        self._running[task] = run

        def ended(task: asyncio.Task[None]) -> None:
            del self._running[task]
            lane.release_slot(cast(SlotReleaseContext, _Held(permit)))
            if not task.cancelled() and (error := task.exception()):
                log.error("a step could not be ended", exc_info=error)

        task.add_done_callback(ended)

    # --- how it stands ------------------------------------------------------------------------------------------

    async def _beat(self, described: dict[str, Any]) -> None:
        """Say for ever that this worker lives, and hear how it stands. Ends when its key is good for nothing."""
        every_s, told = self._kit.settings.worker_heartbeat_interval, False
        while True:
            self._beat_now.clear()
            status, is_heard = self._status(), False
            try:
                heard = await self._api.beat(status, None if told else described)
                every_s = heard.every_s
                is_heard = True
                if not told:
                    self._notes.found = heard.pools_aside
                    await self.quarantine.recall()  # first: whoever is welcome gets work
                told = True
                self._welcomed()
            except Refused as error:
                self.refused(error)
                if error.status == 401:
                    raise KeyRefused(f"{error.sentence} ({error.answer})") from error
            except VlogError as error:  # whatever a proxy on the way makes of it, the next one may be heard
                log.warning("heartbeat not heard: %s", error.sentence)
            await self._rest(every_s, may_be_silent=is_heard and status == IDLE)

    async def _rest(self, every_s: float, *, may_be_silent: bool) -> None:
        """Wait until a beat is due. Who is idle, as it said, and has a question open is known to live.

        Only for so long: what others made of its row meanwhile is put right by its next word.
        """
        for _ in range(MOST_SILENT):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(every_s):
                    await self._beat_now.wait()
                return
            is_asking = any(not asking.done() for asking in self._asking.values())
            if not may_be_silent or not is_asking or self._status() != IDLE:
                return

    def _status(self) -> str:
        # Busy when its encoders are: a probe under way keeps nobody waiting.
        encoders = [lane for pool, lane in self._lanes.items() if pool in ENCODERS] or self._lanes.values()
        return IDLE if any(lane.has_room for lane in encoders) else "busy"

    def _welcomed(self) -> None:
        if self._shut_out:
            if self._shut_out != NOT_YET:
                log.info("welcome again: asking for work")
            self._shut_out = ""
            self._decide()

    def refused(self, error: Refused) -> None:
        """Stop asking and hand back what runs, when a person has shut this worker out; the beats go on."""
        if error.status not in (401, 403) or error.answer in ("CLAIM_NOT_YOURS", "KEY_FORBIDDEN"):
            log.error("the API refused: %s", error.sentence)
            return
        if self._shut_out in ("", NOT_YET):
            log.warning("no work: %s", error.sentence)
            self._shut_out = error.sentence
            self._decide()
            if error.status == 401:
                self._beat_now.set()

    def _set_aside(self, pools: Mapping[Pool, str]) -> None:
        """Take the pools that this worker finds itself unfit for, each with a sentence that says why."""
        self._aside = dict(pools)
        self._decide()

    def _decide(self) -> None:
        """Ask for what is allowed; what runs of all else is handed back, once."""
        for pool, is_open in self._open.items():
            why = self._shut_out or self._aside.get(pool, "")
            if not why:
                self._failures.take_again(pool.queue)
                is_open.set()
            elif is_open.is_set():
                is_open.clear()
                self._failures.hand_back(pool.queue, why)
                if pool in self._asking:
                    self._asking[pool].cancel()
