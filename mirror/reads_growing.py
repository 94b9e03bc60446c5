"""What a stream that is still being encoded is written from."""

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import distinct_on

from contracts.ids import JobId
from contracts.media import PlannedAudio, TranscodePlan
from contracts.message import Message
from contracts.states import StepName, StepOutcome, VideoStatus
from mirror.sessions import AnySession
from mirror.tables import Job, JobStep, Video, unfinished


class GrowingJob(Message):
    """An unfinished job that has a plan."""

    job_id: JobId
    output: str
    plan: TranscodePlan
    given_up: frozenset[str] = frozenset()  # sound that failed for good, by its step: the video does without it

    @property
    def sounds(self) -> tuple[PlannedAudio, ...]:
        """Name the tracks that will come; the default one is waited for, as nothing is published without it."""
        return tuple(each for each in self.plan.audio if each.default or f"audio:{each.track}" not in self.given_up)


async def growing_job(s: AnySession, slug: str) -> GrowingJob | None:
    """Find the unfinished job of a video, once it has a plan; there is one at most.

    A ready video has a whole stream: what a retranscode or a retry adds to it is shown when it is whole, not before.
    """
    if "\x00" in slug:
        return None
    query = (
        select(Job.id, Job.output, Job.plan)
        .join(Video, Video.id == Job.video_id)
        .where(Video.slug == slug, Video.deleted_at.is_(None), Video.status != VideoStatus.READY, unfinished())
    )
    row = (await s.execute(query)).first()
    if row is None or not row.plan:
        return None
    plan = TranscodePlan.model_validate(row.plan)
    return GrowingJob(job_id=JobId(row.id), output=row.output, plan=plan, given_up=await _given_up(s, row.id))


async def _given_up(s: AnySession, job_id: int) -> frozenset[str]:
    newest = (
        select(JobStep.step_key, JobStep.outcome, JobStep.will_retry)
        .ext(distinct_on(JobStep.step_key))
        .where(JobStep.job_id == job_id, JobStep.step == StepName.AUDIO)
        .order_by(JobStep.step_key, JobStep.generation.desc(), JobStep.attempt.desc())
        .subquery()
    )
    failed = newest.c.outcome == StepOutcome.FAILED
    found = await s.execute(select(newest.c.step_key).where(failed, ~newest.c.will_retry))
    return frozenset(found.scalars())
