"""Move what already waits in Temporal's queues to another priority: a job's steps, and those of its child workflows."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from google.protobuf.field_mask_pb2 import FieldMask
from temporalio.api.activity.v1 import ActivityOptions
from temporalio.api.common.v1 import Priority, WorkflowExecution
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflow.v1 import PendingActivityInfo, WorkflowExecutionOptions
from temporalio.api.workflowservice.v1 import UpdateActivityOptionsRequest, UpdateWorkflowExecutionOptionsRequest
from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode

from contracts.states import Tier
from contracts.steps import SetPriority
from workflows.transcode_video import TranscodeVideo

# Not `priority`: that would replace the whole message, and the owner's fairness key with it.
MASK = FieldMask(paths=["priority.priority_key"])


async def prioritize(
    temporal: Client, handle: WorkflowHandle[TranscodeVideo, Any], tier: Tier, *, named: str, within: timedelta
) -> None:
    """Let a job wait with another tier: what it is waiting for now, and what it asks for from now on.

    `named` makes telling it again the same telling.
    """
    # First what needs nobody's answer: a workflow that itself waits for a worker is moved with it.
    await move_queued(temporal, handle.id, tier.priority)
    await handle.execute_update(TranscodeVideo.set_priority, SetPriority(tier=tier), id=named, rpc_timeout=within)
    # What it scheduled before it heard.
    await move_queued(temporal, handle.id, tier.priority)


async def move_queued(temporal: Client, workflow_id: str, priority_key: int) -> None:
    """Give everything of a workflow that waits one priority; what runs is left alone."""
    found = await temporal.get_workflow_handle(workflow_id).describe()
    raw = found.raw_description
    elsewhere = [each for each in raw.pending_activities if _waits(each) and each.priority.priority_key != priority_key]
    await _move(temporal, workflow_id, [each.activity_id for each in elsewhere], priority_key)
    for child in raw.pending_children:
        try:
            await move_queued(temporal, child.workflow_id, priority_key)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:  # it has ended meanwhile
                raise


def _waits(step: PendingActivityInfo) -> bool:
    return step.state == PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED


async def _move(temporal: Client, workflow_id: str, activity_ids: Sequence[str], priority_key: int) -> None:
    execution, priority = WorkflowExecution(workflow_id=workflow_id), Priority(priority_key=priority_key)
    service, namespace = temporal.workflow_service, temporal.namespace
    # For what it schedules without a word of its own, children included.
    await service.update_workflow_execution_options(
        UpdateWorkflowExecutionOptionsRequest(
            namespace=namespace,
            workflow_execution=execution,
            workflow_execution_options=WorkflowExecutionOptions(priority=priority),
            update_mask=MASK,
        )
    )
    for activity_id in activity_ids:
        try:
            await service.update_activity_options(
                UpdateActivityOptionsRequest(
                    namespace=namespace,
                    execution=execution,
                    activity_options=ActivityOptions(priority=priority),
                    update_mask=MASK,
                    id=activity_id,
                )
            )
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:  # it has ended meanwhile
                raise
