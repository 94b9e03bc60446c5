"""Running the steps of one job: their promises and names, waiting without cost, taking back, and stopping."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.exceptions import ActivityError, RetryState, is_cancelled_exception

from contracts.errors import BuildMissing, FailureKind
from contracts.states import Tier
from contracts.steps import PauseJob, StepRequest, TranscodeRequest
from workflows import options
from workflows.patience import Patience
from workflows.reasons import reason, tries_in
from workflows.tries import Ledger, Tries

Request = TypeVar("Request", bound=StepRequest)
Result = TypeVar("Result")


class Outgrown(Exception):
    """Waiting has made the history long. The workflow goes on in a new run, where its segments end."""


class Steps:
    """Runs the steps of one job."""

    def __init__(self, job: TranscodeRequest, *, paused: bool = False) -> None:
        self._job = job
        self._stopping = False  # one of several pieces has failed: the others begin nothing new
        self._failed: Exception | None = None  # that one's error
        self.paused = paused
        self.tier = job.tier
        self._next: dict[str, int] = {}  # generations that the steps have not used yet
        self._passed = job.first_generation  # all below it are used, by somebody
        self.ledger = Ledger(job.tried)
        self.lists = 0  # that run in workflows of their own: only when they have ended it is known how far they counted
        self._running: dict[str, workflow.ActivityHandle[Any]] = {}
        self._taken_back: dict[str, int] = {}  # by a pause: no failures; with the tries that had failed before it

    async def run(
        self,
        step: Callable[[Any, Request], Awaitable[Result]],
        request: Request,
        promise: options.Promise,
        summary: str,
        *,
        tries: Tries | None = None,
        give_up_on: Sequence[str] = (),
    ) -> Result:
        """Run a step to its end.

        A step that is told "later", whose worker is drained, or which a pause takes back is scheduled anew under
        the next generation and has not used an attempt; tries count over all generations. Codes in `give_up_on`
        are not repeated. A promise that limits the wait for a worker fails the step when it is over; any other step
        waits for as long as it takes. Raises Outgrown when all that fills the history.
        """
        tries, without_build = tries or Tries(), 0
        tries.used = max(tries.used, self.ledger.used_by(request))
        if (lost := self.ledger.lost(request)) is not None:
            raise lost
        patience = Patience(promise)
        while True:
            if await self._may_go_on(promise):
                patience.renew()  # nobody is to blame for the time of a pause
            # Work that is asked for again, after another ffmpeg was looked for, goes on counting.
            generation = self._next.get(request.step_key, self._job.first_generation)
            self._next[request.step_key] = generation + 1
            now = {"generation": generation, "tries_before": tries.used, "put_off": patience.put_off}
            request = request.model_copy(update=now)
            name = _activity_id(request)
            handle = workflow.start_activity_method(
                step,
                request,
                activity_id=name,
                task_queue=promise.queue,
                schedule_to_start_timeout=patience.left(),
                start_to_close_timeout=promise.limit(self._job.source_size_bytes),
                heartbeat_timeout=timedelta(seconds=self._job.heartbeat_timeout_s) if promise.heartbeats else None,
                retry_policy=options.retries(promise, self._job.max_attempts - tries.used, give_up_on),
                cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
                priority=options.turn(promise, self._job.owner, self.tier),
                summary=summary,
            )
            retry_after_s, why = 0.0, ""
            try:
                result = await self._ended(name, handle, promise)
            except _TakenBack as taken:
                patience.renew()
                tries.used += taken.tries
                gives_up = taken.error is not None and not self.has_tries_left(tries)
                self.ledger.note(request, tries.used, reason(taken.error) if taken.error and gives_up else None)
                if taken.error is not None and gives_up:
                    raise taken.error from None
            except ActivityError as error:
                if is_cancelled_exception(error):
                    raise
                failure = reason(error)
                is_later = failure.kind is FailureKind.LATER
                tries.used += failure.attempt - is_later
                self.ledger.note(request, tries.used, failure if failure.kind is FailureKind.FATAL else None)
                without_build += failure.code == BuildMissing.code
                wait_s = patience.wait_s(failure) if is_later else None
                if wait_s is None or without_build > options.BUILD_WAITS:  # no worker seems to have it any more
                    raise
                retry_after_s, why = wait_s, failure.sentence
            else:
                self.ledger.finish(request)
                self._go_on(promise)
                return result
            # Not only by waiting: workers that are stopped again and again hand a step from one to the next.
            if not promise.regardless and _is_outgrown(patience):
                self._go_on(promise)
                await self._wait_for_lists()
            elif retry_after_s:
                self._go_on(promise)
                await self._wait(retry_after_s, promise, why)

    async def _wait(self, wait_s: float, promise: options.Promise, why: str) -> None:
        """Leave a busy worker alone. A pause ends it, so that after the resume the step is asked for at once."""
        with contextlib.suppress(TimeoutError):
            await workflow.wait_condition(
                lambda: self.paused and not promise.regardless, timeout=wait_s, timeout_summary=f"waiting: {why}"
            )

    async def _wait_for_lists(self) -> None:
        """Ask no more while there are lists, which have histories of their own; without any this one is over."""
        if not self.lists and not self.paused:
            raise Outgrown
        await workflow.wait_condition(lambda: self.paused or not self.lists)

    @property
    def next_generation(self) -> int:
        """Give a generation that no step of this job has used."""
        return max(self._passed, *self._next.values()) if self._next else self._passed

    def pass_over(self, generation: int) -> None:
        """Note that somebody else has used all generations below this one."""
        self._passed = max(self._passed, generation)

    async def _ended(self, name: str, handle: workflow.ActivityHandle[Result], promise: options.Promise) -> Result:
        """Wait for a step; raise _TakenBack when it ended because of a pause."""
        if not promise.regardless:
            self._running[name] = handle
        try:
            return await handle
        except asyncio.CancelledError:
            # Taken back before it was even scheduled; unless it is we who are being cancelled.
            if name in self._taken_back and not self._is_over():
                raise _TakenBack(0) from None
            raise
        except ActivityError as error:
            if name not in self._taken_back or error.retry_state is not RetryState.CANCEL_REQUESTED:
                raise
            used = tries_in(error, self._taken_back[name])
            if used is None:
                raise
            raise _TakenBack(used, error) from None
        finally:
            self._running.pop(name, None)
            self._taken_back.pop(name, None)

    # --- commands -----------------------------------------------------------------------------------------------

    def pause(self, asked: PauseJob) -> None:
        """Withdraw what waits and take back what runs; nothing begins until `resume`."""
        self.paused = True
        for name, handle in list(self._running.items()):
            self._taken_back.setdefault(name, asked.failed.get(name, 0))
            handle.cancel()

    def resume(self) -> None:
        self.paused = False

    async def resumed(self) -> None:
        """Wait while paused, before something begins that no pause stops."""
        while self.paused:
            await workflow.wait_condition(lambda: not self.paused)

    def set_tier(self, tier: Tier) -> None:
        self.tier = tier

    def has_tries_left(self, tries: Tries) -> bool:
        return tries.used < self._job.max_attempts

    # --- stopping -----------------------------------------------------------------------------------------------

    async def together(self, *work: Coroutine[Any, Any, Any]) -> list[Any]:
        """Run side by side; when one fails, stop the others, wait until they have stopped, and raise its own error."""
        tasks = [asyncio.create_task(each) for each in work]
        try:
            return await asyncio.gather(*tasks)
        # Not what the SDK raises to put a workflow out of its cache.
        except (Exception, asyncio.CancelledError) as error:
            self._stopping = True
            if self._failed is None and isinstance(error, Exception):
                self._failed = error
            for task in tasks:
                task.cancel()
            await uninterrupted(_ended(tasks))
            # One that stops because of a failure deeper down may be heard of first; nobody has cancelled it.
            if self._failed is not None and workflow.cancellation_reason() is None:
                raise self._failed  # noqa: B904 -- it has a cause of its own
            raise

    async def _may_go_on(self, promise: options.Promise) -> bool:
        """Wait while paused; tell whether it was."""
        self._go_on(promise)
        if not self.paused or promise.regardless:
            return False
        await workflow.wait_condition(lambda: not self.paused)
        self._go_on(promise)
        return True

    def _go_on(self, promise: options.Promise) -> None:
        """Raise a cancellation that a step has swallowed by ending on its own; an end is written all the same."""
        if not promise.regardless and self._is_over():
            raise asyncio.CancelledError

    def _is_over(self) -> bool:
        return self._stopping or workflow.cancellation_reason() is not None


class _TakenBack(Exception):
    def __init__(self, tries: int, error: ActivityError | None = None) -> None:
        self.tries, self.error = tries, error


async def _ended(tasks: Sequence[asyncio.Task[Any]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)


async def uninterrupted(work: Coroutine[Any, Any, Result]) -> Result:
    """Finish what must not be left half done, also when a cancel comes meanwhile."""
    task = asyncio.create_task(work)
    while not task.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(task)
    return task.result()


def _is_outgrown(patience: Patience) -> bool:
    """Tell whether waiting has made the history long: this step's, or that of many side by side."""
    info = workflow.info()
    is_long = patience.is_long or info.get_current_history_length() > options.LONG_HISTORY
    return is_long and info.is_continue_as_new_suggested()


def _activity_id(request: StepRequest) -> str:
    """Name the step readably in Temporal's UI; a new generation is a new activity."""
    return request.step_key + (f"~{request.generation}" if request.generation else "")
