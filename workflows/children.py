"""Lists of long videos run in workflows of their own, which hear the same commands as their job."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from temporalio import workflow
from temporalio.common import Priority
from temporalio.exceptions import FailureError

with workflow.unsafe.imports_passed_through():
    from contracts.message import Message
    from contracts.queues import fairness_key
    from contracts.steps import EncodedList, EncodeList, PauseJob, SetPriority
    from workflows.encode_list import TranscodeList
    from workflows.stepping import Steps


class Children:
    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._running: dict[str, workflow.ChildWorkflowHandle[TranscodeList, EncodedList]] = {}

    async def run(self, request: EncodeList) -> EncodedList:
        self._steps.lists += 1
        try:
            encoded = await self._run(request)
        finally:
            self._steps.lists -= 1
        if workflow.cancellation_reason() is not None:
            raise asyncio.CancelledError
        self._steps.pass_over(encoded.next_generation)
        self._steps.ledger.take({rendition.folder for rendition in request.renditions}, encoded.tried)
        return encoded

    async def _run(self, request: EncodeList) -> EncodedList:
        names = "-".join(rendition.folder for rendition in request.renditions)
        child = await workflow.start_child_workflow(
            TranscodeList.run,
            request,
            id=f"{workflow.info().workflow_id}-{names}",
            static_summary=names.replace("-", " "),
            priority=Priority(priority_key=self._steps.tier.priority, fairness_key=fairness_key(request.job.owner)),
            # Cancelled rather than terminated with its parent: the encoders stop and clean up.
            parent_close_policy=workflow.ParentClosePolicy.REQUEST_CANCEL,
            cancellation_type=workflow.ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
        )
        self._running[child.id] = child
        # What was said while it was being started.
        if self._steps.paused and not request.paused:
            await _tell(child, TranscodeList.pause, PauseJob())
        if request.paused and not self._steps.paused:
            await _tell(child, TranscodeList.resume)
        if self._steps.tier is not request.job.tier:
            await _tell(child, TranscodeList.set_priority, SetPriority(tier=self._steps.tier))
        try:
            return await child
        finally:
            del self._running[child.id]

    async def tell(self, signal: Callable[..., Any], *wish: Message) -> None:
        """Pass a command on to every list that runs."""
        for child in list(self._running.values()):
            await _tell(child, signal, *wish)


async def _tell(
    child: workflow.ChildWorkflowHandle[TranscodeList, EncodedList], signal: Callable[..., Any], *wish: Message
) -> None:
    with contextlib.suppress(FailureError):  # it has ended meanwhile: there is nothing left to command
        await child.signal(signal, args=wish)
