"""What Temporal knows of one job, asked now: whether its workflow runs, and which steps somebody holds."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import Client, WorkflowExecutionDescription, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

RPC_TIMEOUT = timedelta(seconds=10)


@dataclass(frozen=True)
class PendingStep:
    """A step that has not ended; `info` is Temporal's own word on it."""

    activity_id: str
    attempt: int
    is_held: bool  # a worker has it; otherwise it waits, for its first attempt or its next
    info: PendingActivityInfo


@dataclass(frozen=True)
class KnownWorkflow:
    status: WorkflowExecutionStatus
    run_id: str
    closed_at: datetime | None
    pending: tuple[PendingStep, ...]  # its own steps and those of its children
    children: tuple[str, ...]  # that have not ended
    decides_for: int = 0  # the attempt at which it, or a child, is to decide what comes next; 1 is the usual one

    @property
    def is_running(self) -> bool:
        return self.status is WorkflowExecutionStatus.RUNNING

    def holds(self, activity_id: str, attempt: int) -> bool:
        """Tell whether a worker holds this very attempt, by Temporal's clock."""
        return any((s.activity_id, s.attempt, s.is_held) == (activity_id, attempt, True) for s in self.pending)

    def awaits(self, activity_id: str) -> bool:
        return any(step.activity_id == activity_id for step in self.pending)


async def known_workflow(client: Client, workflow_id: str) -> KnownWorkflow | None:
    """Ask for a workflow; None when Temporal does not know it. Raises RPCError when Temporal is away."""
    described = await _describe(client, workflow_id)
    if described is None or described.status is None:
        return None
    pending = list(described.raw_description.pending_activities)
    children = [child.workflow_id for child in described.raw_description.pending_children]
    attempts = [described.raw_description.pending_workflow_task.attempt]
    for child in children:
        below = await _describe(client, child)
        if below is not None:
            pending += below.raw_description.pending_activities
            attempts.append(below.raw_description.pending_workflow_task.attempt)
    return KnownWorkflow(
        described.status,
        described.run_id,
        described.close_time,
        tuple(map(_pending, pending)),
        tuple(children),
        max(attempts),
    )


async def _describe(client: Client, workflow_id: str) -> WorkflowExecutionDescription | None:
    try:
        return await client.get_workflow_handle(workflow_id).describe(rpc_timeout=RPC_TIMEOUT)
    except RPCError as error:
        # A namespace that is not there answers NOT_FOUND too, and says nothing about any workflow.
        if error.status is RPCStatusCode.NOT_FOUND and "namespace" not in error.message.lower():
            return None
        raise


def _pending(info: PendingActivityInfo) -> PendingStep:
    held = info.state != PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED
    return PendingStep(info.activity_id, info.attempt, held, info)
