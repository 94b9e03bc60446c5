"""Move what already waits in Temporal's queues to another priority: a job's steps, and those of its child workflows."""

from collections.abc import Sequence

from google.protobuf.field_mask_pb2 import FieldMask
from temporalio.api.activity.v1 import ActivityOptions
from temporalio.api.common.v1 import Priority, WorkflowExecution
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflow.v1 import WorkflowExecutionOptions
from temporalio.api.workflowservice.v1 import UpdateActivityOptionsRequest, UpdateWorkflowExecutionOptionsRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

# Not `priority`: that would replace the whole message, and the owner's fairness key with it.
MASK = FieldMask(paths=["priority.priority_key"])


async def move_queued(temporal: Client, workflow_id: str, priority_key: int) -> None:
    """Give everything of a workflow that waits one priority; what runs is left alone."""
    found = await temporal.get_workflow_handle(workflow_id).describe()
    raw = found.raw_description
    await _move(
        temporal, workflow_id, [each.activity_id for each in raw.pending_activities if _waits(each.state)], priority_key
    )
    for child in raw.pending_children:
        try:
            await move_queued(temporal, child.workflow_id, priority_key)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:  # it has ended meanwhile
                raise


def _waits(state: "PendingActivityState.ValueType") -> bool:
    return state == PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED


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
