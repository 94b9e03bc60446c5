"""Claims of which nobody has said a word yet: their answer may have been lost on its way.

A worker tells its first progress as soon as it has a claim. Where that does not come, the step goes back to its queue
at no attempt, instead of waiting for its heartbeats to run out. Which API hears it does not matter: Temporal knows.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import structlog
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest
from temporalio.client import Client
from temporalio.service import RPCError

from api.claims import Held

log = structlog.get_logger(__name__)

ACKNOWLEDGED_S = 10.0  # a machine that is so slow to say that it has a step is better given none


class Unheard:
    """One per API process. It forgets with the process: then the heartbeat timeout does it, as for a killed worker."""

    def __init__(self, temporal: Client, keep: Callable[[Coroutine[Any, Any, None]], object]) -> None:
        self._temporal, self._keep = temporal, keep
        self._waiting: dict[bytes, asyncio.TimerHandle] = {}

    def watch(self, held: Held, activity_id: str, give_back: Callable[[], Awaitable[None]]) -> None:
        """Give a step back unless somebody speaks of it soon."""
        wait_s = min(ACKNOWLEDGED_S, held.heartbeat_timeout_s / 2)
        loop = asyncio.get_running_loop()
        self._waiting[held.token] = loop.call_later(wait_s, self._over, held, activity_id, give_back)

    def heard(self, token: bytes) -> None:
        if (waiting := self._waiting.pop(token, None)) is not None:
            waiting.cancel()

    def close(self) -> None:
        """Leave what was given out to whoever has it: it may speak to another API."""
        for waiting in self._waiting.values():
            waiting.cancel()
        self._waiting.clear()

    def _over(self, held: Held, activity_id: str, give_back: Callable[[], Awaitable[None]]) -> None:
        self._waiting.pop(held.token, None)
        self._keep(self._look(held, activity_id, give_back))

    async def _look(self, held: Held, activity_id: str, give_back: Callable[[], Awaitable[None]]) -> None:
        if await self._was_heard_elsewhere(held, activity_id):
            return
        log.warning("claim_not_taken_up", job_id=held.job_id, step=held.step_key, attempt=held.attempt)
        await give_back()

    async def _was_heard_elsewhere(self, held: Held, activity_id: str) -> bool:
        """Ask Temporal whether this attempt has ever beaten, or is over; who cannot tell leaves it as it is."""
        request = DescribeWorkflowExecutionRequest(
            namespace=self._temporal.namespace, execution=WorkflowExecution(workflow_id=held.workflow_id)
        )
        try:
            known = await self._temporal.workflow_service.describe_workflow_execution(request)
        except (RPCError, RuntimeError):
            return True
        for pending in known.pending_activities:
            if (pending.activity_id, pending.attempt) == (activity_id, held.attempt):
                beaten, started = pending.last_heartbeat_time, pending.last_started_time
                return beaten.ToNanoseconds() > started.ToNanoseconds()
        return True
