"""A rendition that no GPU makes is the CPU's from its start: what of it was a GPU's counts no more."""

from collections.abc import Iterable

from sqlalchemy import ColumnElement, and_, func, not_, or_, update

from contracts.media import PlannedRendition, TranscodePlan
from contracts.queues import TaskQueue
from contracts.states import EventLevel, QualityStatus, StepOutcome
from mirror.events import Event, add_event
from mirror.sessions import WriteSession
from mirror.tables import Job, JobStep, QualityProgressRow


def descended(job: Job) -> tuple[str, ...]:
    """Name the qualities that were a GPU's once."""
    return tuple(each["quality"] for each in (job.plan or {}).get("renditions", ()) if each.get("descended"))


def that_count(steps: Iterable[JobStep], job: Job) -> list[JobStep]:
    """Leave out what a GPU made or failed to make of them."""
    fell = descended(job)
    return [step for step in steps if step.queue != TaskQueue.GPU or not set(step.qualities) & set(fell)]


def counts(fell: Iterable[str]) -> ColumnElement[bool]:
    """The same in SQL. A step of a GPU has one quality."""
    return not_(and_(JobStep.queue == TaskQueue.GPU, or_(*(JobStep.qualities.contains([name]) for name in fell))))


async def tell_descents(s: WriteSession, job: Job, plan: TranscodePlan) -> None:
    """Let what this plan takes from the GPU begin anew; the job is locked and still has the plan before."""
    were = {each["quality"] for each in (job.plan or {}).get("renditions", ()) if each.get("gpu")}
    for rendition in plan.renditions:
        if rendition.descended and rendition.quality in were:
            await _begin_anew(s, job, rendition)


async def _begin_anew(s: WriteSession, job: Job, rendition: PlannedRendition) -> None:
    quality = rendition.quality
    # A worker that vanished with the step will not say how it ended.
    await s.execute(
        update(JobStep)
        .where(JobStep.job_id == job.id, JobStep.queue == TaskQueue.GPU, JobStep.qualities.contains([quality]))
        .where(JobStep.outcome == StepOutcome.RUNNING)
        .values(outcome=StepOutcome.LOST, finished_at=func.now())
    )
    await s.execute(
        update(QualityProgressRow)
        .where(QualityProgressRow.job_id == job.id, QualityProgressRow.quality == quality)
        .values(
            status=QualityStatus.PENDING,
            segments_completed=0,
            progress_percent=0,
            completed_at=None,
            error_message=None,
        )
    )
    fields = {"quality": quality, "generation": rendition.generation, "encoder": rendition.encoder}
    message = f"{quality} is encoded by the CPU, from its start. {rendition.descended}"
    told = Event("quality.descended", job.id, message, fields, EventLevel.WARNING, step_key=f"quality:{quality}")
    await add_event(s, told)
