"""From a wish in a job's row to the workflow that fulfils it.

A command tries once, the loop here tries what is left over: whoever dies in between, Temporal hears of it. Telling
twice is telling once: updates have the wish's time in their id, and a cancel is a cancel.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from enum import Enum, auto
from typing import Any

import structlog
from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowHandle,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.service import RPCError, RPCStatusCode

from api.moving import prioritize
from api.pausing import pause
from mirror import reads_commands, writes_commands
from mirror.commands import Wish
from mirror.sessions import Database
from mirror.words import Command
from workflows.transcode_video import TranscodeVideo

log = structlog.get_logger(__name__)

TELL_S = 5.0  # a command's answer waits no longer than this for Temporal and for a worker that runs the workflow
EVERY_S = 3.0
AT_ONCE = 20


class Told(Enum):
    HEARD = auto()
    AWAY = auto()  # Temporal, or a worker that would hear it, is not there: the wish stays
    TOO_LATE = auto()  # the workflow is ending: the wish is withdrawn
    GONE = auto()  # Temporal runs no such workflow


class Teller:
    def __init__(self, database: Database, temporal: Client, *, every_s: float = EVERY_S) -> None:
        self._database, self._temporal, self._every_s = database, temporal, every_s

    async def tell(self, wish: Wish) -> Told:
        """Tell Temporal what it has not heard of a job, and note that it has; never raises for one that is away."""
        if not wish.untold or (wish.ended and Command.CANCEL not in wish.untold):
            await self._note(wish)
            return Told.HEARD
        handle = self._temporal.get_workflow_handle_for(TranscodeVideo.run, wish.workflow_id)
        outcome = await self._try(handle, wish)
        match outcome:
            case Told.HEARD:
                await self._note(wish)
            case Told.TOO_LATE:
                async with self._database.write() as session:
                    withdraw = writes_commands.withdraw_pause if wish.paused else writes_commands.told
                    await withdraw(session, wish)
            case Told.GONE if Command.CANCEL in wish.untold:
                # Closed, or never known: if its end was not written either, nobody but us would write it.
                async with self._database.write() as session:
                    await writes_commands.end_lost(session, wish)
                await self._note(wish)
                return Told.HEARD
            case _:
                log.warning("command_not_told", job_id=wish.job_id, untold=list(wish.untold))
        return outcome

    async def tell_left_over(self) -> int:
        """Tell what a command could not, side by side: a workflow that does not answer holds up no other."""
        async with self._database.read() as session:
            wishes = await reads_commands.untold_wishes(session, AT_ONCE)
        outcomes = await asyncio.gather(*(self.tell(wish) for wish in wishes))
        return sum(outcome is Told.HEARD for outcome in outcomes)

    async def run(self) -> None:
        """Look for wishes until cancelled; whatever goes wrong, look again."""
        while True:
            try:
                if heard := await self.tell_left_over():
                    log.info("left_over_commands_told", jobs=heard)
            except Exception as error:
                reason = next(iter(str(error).splitlines()), "") or type(error).__name__
                log.warning("looking_for_left_over_commands_failed", error=reason)
            await asyncio.sleep(self._every_s)

    async def _note(self, wish: Wish) -> None:
        if wish.at is not None:
            async with self._database.write() as session:
                await writes_commands.told(session, wish)

    async def _try(self, handle: WorkflowHandle[TranscodeVideo, Any], wish: Wish) -> Told:
        limit = timedelta(seconds=TELL_S)
        try:
            # The SDK connects lazily and retries on its own; this is the limit on all of that together.
            async with asyncio.timeout(TELL_S):
                if Command.CANCEL in wish.untold:
                    await handle.cancel(reason="The job was cancelled.", rpc_timeout=limit)
                    # Temporal takes a cancel of what has long ended without a word.
                    found = await handle.describe(rpc_timeout=limit)
                    return Told.HEARD if found.status is WorkflowExecutionStatus.RUNNING else Told.GONE
                if Command.PAUSE in wish.untold and wish.paused:
                    await pause(self._temporal, handle, named=f"pause-{wish.at}", within=limit)
                elif Command.PAUSE in wish.untold:
                    await handle.execute_update(TranscodeVideo.resume, id=f"pause-{wish.at}", rpc_timeout=limit)
                if Command.PRIORITY in wish.untold:
                    await prioritize(self._temporal, handle, wish.tier, named=f"priority-{wish.at}", within=limit)
        except WorkflowUpdateFailedError:
            return Told.TOO_LATE
        except RPCError as error:
            return Told.GONE if error.status is RPCStatusCode.NOT_FOUND else Told.AWAY
        except (TimeoutError, RuntimeError, WorkflowUpdateRPCTimeoutOrCancelledError):
            return Told.AWAY  # RuntimeError: the SDK's word for "cannot connect"
        return Told.HEARD


@asynccontextmanager
async def running(teller: Teller) -> AsyncIterator[None]:
    """Run the loop beside whatever is inside."""
    telling = asyncio.create_task(teller.run(), name="teller")
    try:
        yield
    finally:
        telling.cancel()
        await asyncio.gather(telling, return_exceptions=True)
