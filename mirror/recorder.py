"""Where steps tell what they do. The calls only remember; a task of its own writes, when Postgres lets it.

Lossy by design: the newest news of an attempt replaces the older, and Postgres may be away for minutes without
any encode noticing. What must not be lost, a job's end, is written by an activity instead.
"""

import asyncio
import logging
import math
import time

from contracts.media import SourceFacts
from contracts.plan import TranscodePlan
from contracts.queues import share_of
from contracts.states import StepOutcome, WorkerStatus
from contracts.steps import StepProgress
from mirror.claims import StepClaim, WorkerIdentity
from mirror.refusals import is_refusal
from mirror.remembering import THROTTLE_S, Remembered
from mirror.sessions import Database
from mirror.step_events import LATER_CODES
from mirror.writes_steps import StepEnd, StepNews, WorkerLoad, record_step

__all__ = ["StepClaim", "StepRecorder", "WorkerIdentity"]

log = logging.getLogger(__name__)

WRITE_TIMEOUT_S = 10.0
BACKOFF_S = (0.5, 5.0)
CLOSE_S = 5.0
SETTLE_S = 2.0
LOOK_S = 0.02
WORD_S = 5.0  # a worker of which nothing is new is said to live so often, not with every percent of every step
TRIES_OF_BAD_NEWS = 3  # news that Postgres refuses as such would otherwise be sent for ever
MOST_REMEMBERED = 5000

Fence = tuple[int, str, int, int]


class StepRecorder:
    """One per process. Its calls never fail and never wait; any thread may make them.

    A worker's records for that worker; the API's for whoever holds each claim (`StepClaim.held_by`).
    """

    def __init__(self, database: Database, worker: WorkerIdentity | None, *, claim_s: float | None = None) -> None:
        self._database = database
        self._worker = worker
        self._claim_s = claim_s  # VLOG_WORKER_CLAIM_DURATION_MINUTES, when set
        self._entries: dict[Fence, Remembered] = {}
        self._ended: dict[Fence, None] = {}  # the last that ended: a beat may still come after
        self._told: dict[str, tuple[WorkerLoad, float]] = {}  # of each worker, and when
        self._wake = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        self._closing = False
        self._backoff_s = 0.0
        self._retry_at = -math.inf

    # --- what steps call ----------------------------------------------------------------------------------------

    def started(self, claim: StepClaim) -> None:
        """Remember that an attempt began."""
        self._entry(claim)
        self._ring()

    def beat(self, claim: StepClaim, progress: StepProgress | None = None) -> None:
        """Remember a heartbeat; without progress it only extends the claim."""
        if claim.fence in self._ended:
            return
        entry = self._entry(claim)
        if entry.end is None:
            entry.beat_at = time.monotonic()
            entry.progress = progress or entry.progress
            self._ring()

    def learned(self, claim: StepClaim, result: SourceFacts | TranscodePlan) -> None:
        """Remember what a step found out, for the rows of video and qualities."""
        entry = self._entry(claim)
        entry.learned.append(result)
        entry.urgent = True
        self._ring()

    def ended(
        self,
        claim: StepClaim,
        outcome: StepOutcome,
        *,
        code: str | None = None,
        sentence: str | None = None,
        detail: str | None = None,
        will_retry: bool = False,
    ) -> None:
        """Remember how an attempt ended; nothing that comes after changes it."""
        entry = self._entry(claim)
        if entry.end is None:
            if outcome is StepOutcome.FAILED and code in LATER_CODES:
                outcome = StepOutcome.PARTIAL  # busy is not broken: it costs no attempt
            entry.beat_at = time.monotonic()
            entry.urgent = True
            entry.end = StepEnd(outcome, code, sentence, detail, will_retry)
            self._ring()

    @property
    def status(self) -> WorkerStatus:
        """Tell whether this worker has a free slot, for its own heartbeat."""
        assert self._worker is not None
        return self._load(self._worker).status

    async def settled(self, worker_id: str, timeout_s: float = SETTLE_S) -> None:
        """Wait until a worker's steps that have ended are written, if Postgres takes them in time.

        What is written later would tell that the worker lives: one that leaves is to be seen to have left.
        """
        for _ in range(round(timeout_s / LOOK_S)):
            ended = (entry.claim for entry in self._entries.values() if entry.end is not None)
            if not any(self._holder(claim).worker_id == worker_id for claim in ended):
                return
            await asyncio.sleep(LOOK_S)

    # --- the flusher --------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Write what is due, until closed or cancelled."""
        self._loop = asyncio.get_running_loop()
        self._idle.clear()
        try:
            while not self._closing:
                self._wake.clear()
                await self._flush_due()
                if not self._closing:
                    await self._sleep()
        finally:
            self._idle.set()

    async def close(self, timeout_s: float = CLOSE_S) -> None:
        """Stop the flusher and write what is left, if Postgres takes it in time."""
        self._closing = True
        self._wake.set()
        self._retry_at = -math.inf
        try:
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()
                while any(entry.due_at() < math.inf for entry in self._entries.values()):
                    await self._flush_due(all_of_it=True)
                    if self._retry_at > time.monotonic():
                        await asyncio.sleep(0.2)
                        self._retry_at = -math.inf
        except TimeoutError:
            log.warning("%d steps' news were not written to the mirror before stopping", len(self._entries))

    async def _sleep(self) -> None:
        due = min((entry.due_at() for entry in self._entries.values()), default=math.inf)
        due = max(due, self._retry_at)
        wait_s = None if due == math.inf else max(0.0, due - time.monotonic())
        try:
            async with asyncio.timeout(wait_s):
                await self._wake.wait()
        except TimeoutError:
            return
        if self._retry_at > time.monotonic():  # while Postgres is away every beat would wake us for nothing
            await asyncio.sleep(min(THROTTLE_S, self._retry_at - time.monotonic()))

    async def _flush_due(self, *, all_of_it: bool = False) -> None:
        now = time.monotonic()
        if now < self._retry_at:
            return
        # In the order they began: an attempt that failed here is written before the one that follows it.
        for fence, entry in list(self._entries.items()):
            if entry.due_at() <= now or (all_of_it and entry.due_at() < math.inf):
                if not await self._flush(fence, entry):
                    return

    async def _flush(self, fence: Fence, entry: Remembered) -> bool:
        """Write one attempt's news in one transaction; False when Postgres is away."""
        end, progress, beat_at, learned = entry.end, entry.progress, entry.beat_at, tuple(entry.learned)
        entry.urgent = False
        news = StepNews(
            claim=entry.claim,
            progress=progress,
            beat_age_s=max(0.0, time.monotonic() - beat_at),
            end=end,
            learned=learned,
            claim_s=self._claim_s,
        )
        try:
            async with asyncio.timeout(WRITE_TIMEOUT_S), self._database.write() as session:
                worker = self._holder(entry.claim)
                load = self._news_of(worker)
                accepted = await record_step(session, news, worker, load)
        except Exception as error:
            if is_refusal(error):
                return self._refused(fence, entry, error)
            entry.urgent = True
            self._away(error)
            return False
        except BaseException:
            entry.urgent = True  # cancelled in between: close() writes it
            raise
        self._back()
        if load is not None:
            self._told[worker.worker_id] = (load, time.monotonic())
        entry.refusals = 0
        entry.written_at = time.monotonic()
        entry.written_beat_at, entry.written_progress = beat_at, progress
        del entry.learned[: len(learned)]
        if end is not None:
            self._entries.pop(fence, None)
            self._ended[fence] = None
            if len(self._ended) > MOST_REMEMBERED:
                self._ended.pop(next(iter(self._ended)))
        elif not accepted and not entry.fenced:
            entry.fenced = True
            log.info("%s of job %d lost to a newer attempt or to the job's end", entry.claim.step_key, fence[0])
        return True

    def _refused(self, fence: Fence, entry: Remembered, error: Exception) -> bool:
        entry.refusals += 1
        entry.written_at = time.monotonic()
        entry.urgent = True
        log.error("the mirror refused news of %s of job %d: %s", entry.claim.step_key, fence[0], error)
        if entry.refusals >= TRIES_OF_BAD_NEWS:
            self._entries.pop(fence, None)
        return True

    def _away(self, error: Exception) -> None:
        if not self._backoff_s:
            log.warning("the mirror does not answer (%s); steps go on, it will catch up", type(error).__name__)
        first, longest = BACKOFF_S
        self._backoff_s = min(longest, self._backoff_s * 2 or first)
        self._retry_at = time.monotonic() + self._backoff_s

    def _back(self) -> None:
        if self._backoff_s:
            log.info("the mirror answers again")
        self._backoff_s, self._retry_at = 0.0, -math.inf

    # --- memory -------------------------------------------------------------------------------------------------

    def _entry(self, claim: StepClaim) -> Remembered:
        entry = self._entries.get(claim.fence)
        if entry is None:
            if len(self._entries) >= MOST_REMEMBERED:
                self._forget_one()
            entry = self._entries[claim.fence] = Remembered(claim, time.monotonic())
        return entry

    def _forget_given_up(self) -> None:
        """Forget attempts whose end this process will not hear of; should one speak again, it is remembered anew."""
        now = time.monotonic()
        for fence, entry in list(self._entries.items()):
            if entry.is_given_up(now):
                self._entries.pop(fence, None)

    def _forget_one(self) -> None:
        ended = (fence for fence, entry in self._entries.items() if entry.end is not None)
        self._entries.pop(next(ended, next(iter(self._entries))), None)

    def _holder(self, claim: StepClaim) -> WorkerIdentity:
        worker = claim.held_by or self._worker
        assert worker is not None  # a recorder of nobody's is only given claims that say whose they are
        return worker

    def _news_of(self, worker: WorkerIdentity) -> WorkerLoad | None:
        """Say what a worker holds, if that is new or was not said for a while."""
        load = self._load(worker)
        told = self._told.get(worker.worker_id)
        return None if told and told[0] == load and time.monotonic() < told[1] + WORD_S else load

    def _load(self, worker: WorkerIdentity) -> WorkerLoad:
        """Say what a worker holds now: busy when no slot is free, with the newest job."""
        self._forget_given_up()
        held = [
            entry.claim
            for entry in list(self._entries.values())
            if entry.end is None and self._holder(entry.claim).worker_id == worker.worker_id
        ]
        slots = worker.slots
        busy = bool(held)
        if slots:
            busy = all(
                sum(share_of(room, claim.slots) for claim in held if claim.queue == queue) >= room
                for queue, room in slots.items()
            )
        newest = max(held, key=lambda claim: (claim.started_at, claim.job_id), default=None)
        status = WorkerStatus.BUSY if busy else WorkerStatus.IDLE
        return WorkerLoad(status, newest.job_id if newest else None)

    def _ring(self) -> None:
        try:
            if asyncio.get_running_loop() is self._loop:  # mostly; from another thread it takes a system call or two
                return self._wake.set()
        except RuntimeError:
            pass  # a thread without a loop
        try:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._wake.set)
        except RuntimeError:  # the loop is closing: nobody is left to wake
            pass
