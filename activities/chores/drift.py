"""Jobs on which mirror and Temporal disagree: a workflow that ended without a word, or one that nobody knows now."""

from temporalio import activity
from temporalio.client import Client

from activities.chores.knowing import known_workflow
from activities.ending import EndingSteps
from activities.history import HistoryReader, step_types
from activities.publishing import PublishSteps
from activities.rebuilding import MirrorRebuild
from contracts.end_steps import FailJob
from contracts.housekeeping import ChoreDone, KeepHouse
from mirror import writes
from mirror.chores_drift import DoubtfulJob, doubtful_jobs, put_back, tell_stuck
from mirror.outbox import Outbox
from mirror.sessions import Database
from storage.store import Store

AT_ONCE = 100
# Temporal repeats what goes wrong in a workflow's own code for ever, ever more seldom: by then for minutes.
STUCK_FROM_ATTEMPT = 8
# Of a closed workflow's history only how it ended is of interest.
ENDS = step_types((PublishSteps.publish, EndingSteps.finalize, EndingSteps.fail_job))


class DriftChore:
    def __init__(self, database: Database, temporal: Client, outbox: Outbox, store: Store) -> None:
        self._database, self._temporal, self._outbox = database, temporal, outbox
        self._stories = MirrorRebuild(database, temporal, store, HistoryReader(temporal, ENDS))

    @activity.defn
    async def mend_drift(self, request: KeepHouse) -> ChoreDone:
        """Write the end of jobs whose workflow has ended, and start again what Temporal has forgotten.

        Whose workflow cannot go on, since our own code fails in it, waits for a person: somebody is told, once.

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
            elif known.decides_for >= STUCK_FROM_ATTEMPT:
                async with self._database.write() as session:
                    await tell_stuck(session, job.job_id, known.decides_for)
        if forgotten:
            await self._outbox.start_left_over(older_than_s=0)  # a job of this moment is started twice, once
        return ChoreDone(count=mended + forgotten)

    async def _end(self, job: DoubtfulJob) -> bool:
        """Write how the workflow ended, in its own words where it left any, and what it has put in place.

        The rows of its renditions may be lost with its end, as after a restore: files that no row names would be
        removed one day, though they are served.
        """
        story = await self._stories.story(job.workflow_id)
        if story is None or story.ending is None:
            return False  # forgotten in this moment: the next run puts it back
        end, published = story.ending, story.published
        async with self._database.write() as session:
            if isinstance(end, FailJob):
                return await writes.fail_job(session, end)
            if published is not None:
                await writes.record_renditions(session, end.job_id, end.video_id, published.renditions, published.keep)
            return await writes.complete_job(session, end)
