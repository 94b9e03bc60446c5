"""Pause a job, and tell it what only Temporal knows: how often each of its unfinished steps has failed.

A step that is taken back, running or waiting for its next attempt, ends without that number, and would be given all
its tries anew.
"""

from datetime import timedelta
from typing import Any

from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode

from contracts.steps import PauseJob
from workflows.transcode_video import TranscodeVideo


async def pause(
    temporal: Client, handle: WorkflowHandle[TranscodeVideo, Any], *, named: str, within: timedelta
) -> None:
    """Withdraw what of a job waits and take back what runs. `named` makes telling it again the same telling."""
    asked = PauseJob(failed=await _failed(temporal, handle.id, within))
    await handle.execute_update(TranscodeVideo.pause, asked, id=named, rpc_timeout=within)


async def _failed(temporal: Client, workflow_id: str, within: timedelta) -> dict[str, int]:
    """Count the attempts that have failed of a workflow's unfinished steps, and of its children's."""
    raw = (await temporal.get_workflow_handle(workflow_id).describe(rpc_timeout=within)).raw_description
    failed = {step.activity_id: step.attempt - 1 for step in raw.pending_activities if step.attempt > 1}
    for child in raw.pending_children:
        try:
            failed |= await _failed(temporal, child.workflow_id, within)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:  # it has ended meanwhile
                raise
    return failed
