"""A rendition that no GPU makes is the CPU's from its start: people are told why, and what a GPU held is closed."""

from sqlalchemy import select

from contracts.plan import PlannedRendition, TranscodePlan
from contracts.queues import TaskQueue
from contracts.states import EventLevel, StepOutcome
from mirror.events import Event, add_event
from mirror.locking import database_now
from mirror.sessions import WriteSession
from mirror.step_events import lost_event
from mirror.tables import Job, JobStep


async def tell_descents(s: WriteSession, job: Job, plan: TranscodePlan) -> None:
    """Tell what this plan takes from the GPU; the job is locked and still has the plan before."""
    were = {each["quality"] for each in (job.plan or {}).get("renditions", ()) if each.get("gpu")}
    for rendition in plan.renditions:
        if rendition.descended and rendition.quality in were:
            await _tell(s, job, rendition)


async def _tell(s: WriteSession, job: Job, rendition: PlannedRendition) -> None:
    quality = rendition.quality
    # A worker that vanished with the step will not say how it ended. One that was heard just now may still say it.
    running = await s.execute(
        select(JobStep)
        .where(JobStep.job_id == job.id, JobStep.queue == TaskQueue.GPU, JobStep.qualities.contains([quality]))
        .where(JobStep.outcome == StepOutcome.RUNNING)
    )
    now = await database_now(s)
    for step in running.scalars().all():
        step.outcome, step.finished_at = StepOutcome.LOST, now
        await s.flush()
        if step.claim_expires_at <= now:
            await add_event(s, lost_event(step))
    fields = {"quality": quality, "generation": rendition.generation, "encoder": rendition.encoder}
    message = f"{quality} is encoded by the CPU, from its start. {rendition.descended}"
    told = Event("quality.descended", job.id, message, fields, EventLevel.WARNING, step_key=f"quality:{quality}")
    await add_event(s, told)
