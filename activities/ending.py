"""How a job ends, in the mirror. These are retried until Postgres takes them: an end is never best effort."""

from temporalio import activity

from contracts.end_steps import FailJob, Finalize
from mirror import writes
from mirror.sessions import Database


class EndingSteps:
    def __init__(self, database: Database) -> None:
        self._database = database

    @activity.defn
    async def finalize(self, request: Finalize) -> None:
        """Write that the video is ready.

        Safe to repeat: ending an ended job changes nothing.
        """
        async with self._database.write() as session:
            await writes.complete_job(session, request)

    @activity.defn
    async def fail_job(self, request: FailJob) -> None:
        """Write that the job failed, and why.

        Safe to repeat: ending an ended job changes nothing.
        """
        async with self._database.write() as session:
            await writes.fail_job(session, request)
