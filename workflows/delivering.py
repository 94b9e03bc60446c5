"""Hands one delivery to Temporal; repeating it is the same start. For API and housekeeping: no workflow imports it."""

import asyncio
from datetime import timedelta

import structlog
from temporalio.client import Client
from temporalio.common import Priority, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError

from contracts.queues import TaskQueue
from contracts.webhooks import Carried, Deliver
from workflows.deliver_webhook import DeliverWebhook

log = structlog.get_logger(__name__)

START_S = 3.0


class DeliveryStarter:
    """Starts `DeliverWebhook`. `pace` replaces how long it waits between attempts, for tests."""

    def __init__(self, temporal: Client, **pace: float) -> None:
        self._temporal, self._pace = temporal, pace

    async def __call__(self, request: Deliver) -> Carried:
        """Start one delivery's workflow; never raises for a Temporal that is away."""
        request = request.model_copy(update=self._pace)
        try:
            # The SDK connects lazily and retries on its own; this is the limit on all of that together.
            async with asyncio.timeout(START_S):
                await self._temporal.start_workflow(
                    DeliverWebhook.run,
                    request,
                    id=request.workflow_id,
                    task_queue=TaskQueue.ORCHESTRATE,
                    id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                    id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                    # Videos first: a message that comes a moment later is as good.
                    priority=Priority(priority_key=5),
                    rpc_timeout=timedelta(seconds=START_S),
                )
        except WorkflowAlreadyStartedError:
            return Carried.ENDED
        except (RPCError, TimeoutError, RuntimeError) as error:  # RuntimeError: the SDK's word for "cannot connect"
            log.warning("delivery_not_started", workflow=request.workflow_id, error=str(error) or "timeout")
            return Carried.AWAY
        return Carried.RUNS
