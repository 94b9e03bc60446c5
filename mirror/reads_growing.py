"""What a stream that is still being encoded is written from."""

from sqlalchemy import exists, select, tuple_
from sqlalchemy.orm import aliased

from contracts.ids import JobId
from contracts.message import Message
from contracts.plan import PlannedAudio, PlannedRendition, TranscodePlan
from contracts.states import StepName, StepOutcome, VideoStatus
from contracts.steps import work_in
from mirror.sessions import AnySession
from mirror.tables import Job, JobStep, Video, unfinished

_NEWER = aliased(JobStep)


class GrowingJob(Message):
    """An unfinished job that has a plan."""

    job_id: JobId
    output: str
    plan: TranscodePlan
    given_up: frozenset[str] = frozenset()  # what failed for good: sound as `audio:1`, a rung by its folder

    @property
    def sounds(self) -> tuple[PlannedAudio, ...]:
        """Name the tracks that will come; the default one is waited for, as nothing is published without it."""
        return tuple(each for each in self.plan.audio if each.default or f"audio:{each.track}" not in self.given_up)

    @property
    def rungs(self) -> tuple[PlannedRendition, ...]:
        """Name the renditions that will come; who watches another must be told, or waits for it until the job ends."""
        return tuple(each for each in self.plan.renditions if each.folder not in self.given_up)


async def growing_job(s: AnySession, slug: str) -> GrowingJob | None:
    """Find the unfinished job of a video, once it has a plan; there is one at most.

    A ready video has a whole stream: what a retranscode or a retry adds to it is shown when it is whole, not before.
    """
    if "\x00" in slug:
        return None
    query = (
        select(Job.id, Job.output, Job.plan, Job.max_attempts)
        .join(Video, Video.id == Job.video_id)
        .where(Video.slug == slug, Video.deleted_at.is_(None), Video.status != VideoStatus.READY, unfinished())
    )
    row = (await s.execute(query)).first()
    if row is None or not row.plan:
        return None
    plan = TranscodePlan.model_validate(row.plan)
    given_up = await _given_up(s, row.id, row.max_attempts)
    return GrowingJob(job_id=JobId(row.id), output=row.output, plan=plan, given_up=given_up)


async def _given_up(s: AnySession, job_id: int, max_attempts: int) -> frozenset[str]:
    """Name what the job's steps have failed to make, all of its tries used or none of use."""
    is_newest = ~exists().where(
        _NEWER.job_id == JobStep.job_id,
        _NEWER.step_key == JobStep.step_key,
        tuple_(_NEWER.generation, _NEWER.attempt) > tuple_(JobStep.generation, JobStep.attempt),
    )
    query = select(JobStep).where(
        JobStep.job_id == job_id,
        JobStep.step.in_([StepName.AUDIO, StepName.TRANSCODE]),
        JobStep.outcome.in_([StepOutcome.FAILED, StepOutcome.LOST]),
        ~JobStep.will_retry,
        is_newest,
    )
    ended = [step for step in (await s.execute(query)).scalars() if _is_final(step, max_attempts)]
    sounds = {step.step_key for step in ended if step.step is StepName.AUDIO}
    folders = {name for step in ended if step.qualities for name in work_in(step.step_key)}
    return frozenset(sounds | folders)


def _is_final(step: JobStep, max_attempts: int) -> bool:
    """Tell a failure that nothing follows: of a list with tries left each quality is tried by itself."""
    alone = len(step.qualities) < 2
    return step.tries >= max_attempts or (alone and step.outcome is StepOutcome.FAILED)
