"""How a closed workflow ended, in its own words where it left any."""

from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ApplicationError, CancelledError, TerminatedError, TimeoutError

from contracts.end_steps import FailJob, Finalize
from contracts.errors import CANCELLED, TERMINATED, WORKFLOW_FAILED, WORKFLOW_TIMED_OUT
from contracts.ids import JobId, VideoId
from contracts.steps import TranscodeResult

NO_REASON = ("Workflow terminated", "terminated by user via frontend")  # what stands there when nobody gave one


async def ending_of(temporal: Client, workflow_id: str, job_id: JobId, video_id: VideoId) -> Finalize | FailJob:
    """Read the end of a closed workflow as the step would have been told to write it."""
    handle = temporal.get_workflow_handle(workflow_id, result_type=TranscodeResult)
    try:
        result: TranscodeResult = await handle.result()
    except WorkflowFailureError as error:
        code, sentence = _why(error.cause)
        return FailJob(job_id=job_id, video_id=video_id, code=code, sentence=sentence)
    return Finalize(
        job_id=job_id,
        video_id=video_id,
        duration_s=result.duration_s,
        qualities=result.qualities,
        missing=result.missing,
    )


def _why(cause: BaseException | None) -> tuple[str, str]:
    match cause:
        case TerminatedError():
            said = f": {cause.message}" if cause.message not in ("", *NO_REASON) else ""
            return TERMINATED, f"Somebody terminated its workflow in Temporal{said}. What it had encoded is kept."
        case CancelledError():
            return CANCELLED, "The job was cancelled."
        case TimeoutError():
            return WORKFLOW_TIMED_OUT, "Its workflow was given a time limit in Temporal, and ran out of it."
        case ApplicationError():
            return cause.type or WORKFLOW_FAILED, cause.message
        case _:
            return WORKFLOW_FAILED, "Its workflow failed in Temporal without saying why."
