"""The job's row is the outbox: what was committed reaches Temporal sooner or later, whoever carries it there.

Several may carry at once, API processes and housekeeping: the same start twice is one start.
"""

from contracts.end_steps import FailJob
from contracts.starting import START_REFUSED, HandOver, Start
from contracts.steps import TranscodeRequest
from mirror import reads, writes
from mirror.sessions import Database

# Younger jobs are still in the hands of the request that made them.
OLDER_THAN_S = 5.0
AT_ONCE = 50


class Outbox:
    def __init__(self, database: Database, hand_over: HandOver) -> None:
        self._database, self._hand_over = database, hand_over

    async def start(self, request: TranscodeRequest, title: str) -> Start:
        """Start one job's workflow and say so in the mirror.

        A refusal for good is the job's end: left pending it would be refused for ever, ahead of jobs that can start.
        """
        outcome, why = await self._hand_over(request, title)
        if outcome is Start.STARTED:
            async with self._database.write() as session:
                await writes.workflow_started(session, request.job_id)
        elif outcome is Start.REFUSED:
            sentence = f"Temporal refused to start the job: {why}"
            end = FailJob(job_id=request.job_id, video_id=request.video_id, code=START_REFUSED, sentence=sentence)
            async with self._database.write() as session:
                await writes.fail_job(session, end)
        return outcome

    async def start_left_over(self, *, older_than_s: float | None = None) -> int:
        """Start what was committed and not started, oldest first; stop at once when Temporal is away."""
        age_s = OLDER_THAN_S if older_than_s is None else older_than_s
        async with self._database.read() as session:
            waiting = await reads.unstarted_jobs(session, older_than_s=age_s, limit=AT_ONCE)
        started = 0
        for request in waiting:
            async with self._database.read() as session:
                video = await reads.video(session, request.video_id)
            outcome = await self.start(request, video.title if video else request.slug)
            if outcome is Start.AWAY:
                break
            started += outcome is Start.STARTED
        return started
