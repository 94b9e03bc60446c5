"""Jobs on which mirror and Temporal disagree: a workflow that ended without a word, or one that nobody knows now."""

from temporalio import activity
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ApplicationError, CancelledError, TerminatedError, TimeoutError

from activities.chores.knowing import known_workflow
from contracts.errors import CANCELLED, TERMINATED, WORKFLOW_FAILED, WORKFLOW_TIMED_OUT
from contracts.housekeeping import ChoreDone, KeepHouse
from contracts.ids import JobId, VideoId
from contracts.steps import FailJob, Finalize, TranscodeResult
from mirror import writes
from mirror.chores_drift import DoubtfulJob, doubtful_jobs, put_back
from mirror.outbox import Outbox
from mirror.sessions import Database

AT_ONCE = 100
NO_REASON = ("Workflow terminated", "terminated by user via frontend")  # what stands there when nobody gave one


class DriftChore:
    def __init__(self, database: Database, temporal: Client, outbox: Outbox) -> None:
        self._database, self._temporal, self._outbox = database, temporal, outbox

    @activity.defn
    async def mend_drift(self, request: KeepHouse) -> ChoreDone:
        """Write the end of jobs whose workflow has ended, and start again what Temporal has forgotten.

        Safe to repeat: an ended job is not ended again, and a start under the same id is one start. Beside a
        workflow that ends right now: it writes its end before it closes, and that one is kept. Beside an upload or a
        retry: only jobs count that were started a while ago; a retry is another job.
        """
        async with self._database.write() as session:
            doubtful = await doubtful_jobs(session, limit=AT_ONCE)
        mended = forgotten = 0
        for job in doubtful:
            known = await known_workflow(self._temporal, job.workflow_id)
            if known is None:
                async with self._database.write() as session:
                    forgotten += await put_back(session, job.job_id)
            elif not known.is_running:
                mended += await self._end(job)
        if forgotten:
            await self._outbox.start_left_over(older_than_s=0)  # a job of this moment is started twice, once
        return ChoreDone(count=mended + forgotten)

    async def _end(self, job: DoubtfulJob) -> bool:
        """Write how the workflow ended, in its own words where it left any."""
        end = await ending(self._temporal, job)
        async with self._database.write() as session:
            if isinstance(end, Finalize):
                return await writes.complete_job(session, end)
            return await writes.fail_job(session, end)


async def ending(temporal: Client, job: DoubtfulJob) -> Finalize | FailJob:
    """Read the end of a closed workflow as the step would have been told to write it."""
    handle = temporal.get_workflow_handle(job.workflow_id, result_type=TranscodeResult)
    job_id, video_id = JobId(job.job_id), VideoId(job.video_id)
    try:
        result: TranscodeResult = await handle.result()
    except WorkflowFailureError as error:
        code, sentence = _why(error.cause)
        return FailJob(job_id=job_id, video_id=video_id, code=code, sentence=sentence)
    return Finalize(job_id=job_id, video_id=video_id, duration_s=result.duration_s, qualities=result.qualities)


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
