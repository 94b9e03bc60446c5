"""The steps of one job, read so that a long film costs no more than a short one.

A film of three hours has a thousand steps, and every heartbeat of each of them is written. What is done is added up
by Postgres; rows are read only of what is not.
"""

from collections.abc import Mapping

from sqlalchemy import ARRAY, Integer, Subquery, Text, and_, cast, column, func, select, true
from sqlalchemy.dialects.postgresql import distinct_on

from contracts.ids import JobId
from contracts.plan import Span
from contracts.states import UNTIL_DONE, StepName, StepOutcome
from contracts.steps import Tried, work_in
from mirror.deriving import Done, DoneQuality
from mirror.sessions import AnySession
from mirror.tables import JobStep

_INTEGERS = ARRAY(Integer)


async def attempts_of(s: AnySession, job_id: JobId | int, step_key: str) -> list[JobStep]:
    """Read every attempt of one step."""
    found = await s.execute(select(JobStep).where(JobStep.job_id == job_id, JobStep.step_key == step_key))
    return list(found.scalars())


async def open_steps(s: AnySession, job_id: JobId | int, *, but: str) -> list[JobStep]:
    """Read the newest attempt of each step but one, without spans that are done."""
    newest = _newest(job_id, but)
    query = select(JobStep).where(JobStep.id.in_(select(newest.c.id).where(~newest.c.is_done)))
    return list((await s.execute(query)).scalars())


async def tried_by(s: AnySession, job_id: JobId | int) -> tuple[Tried, ...]:
    """Tell what a job's unfinished steps have used, for a run that Temporal begins without knowing of any before.

    Only numbers: rows may be missing, and nothing is given up because of what they say.
    """
    found: dict[tuple[str, Span | None], Tried] = {}
    for step in sorted(await open_steps(s, job_id, but=""), key=lambda step: step.started_at):
        # What was handed back, or runs, has used no try; nor has what ended with the Temporal that forgot it.
        used = step.tries - (step.outcome not in (StepOutcome.FAILED, StepOutcome.LOST))
        if used and step.step not in UNTIL_DONE and step.outcome is not StepOutcome.COMPLETED:
            span = None
            if step.first_segment is not None and step.segments is not None:
                span = Span(first_segment=step.first_segment, segments=step.segments)
            # Of a list that was split the pieces have the later word.
            found |= {(work, span): Tried(work=work, span=span, used=used) for work in work_in(step.step_key)}
    return tuple(found.values())


async def done_spans(
    s: AnySession, job_id: JobId | int, *, but: str, generations: Mapping[str, int] | None = None
) -> Done:
    """Add up the spans that are done, leaving out one step, and what was made before a quality started anew."""
    newest = _newest(job_id, but)
    quality = func.jsonb_array_elements_text(newest.c.qualities).table_valued(column("name", Text)).lateral("quality")
    # As `generation_in` reads it.
    told = func.substring(newest.c.step_key, func.concat("[:,]", quality.c.name, "[.]([0-9]+)(?:,|$)"))
    made = cast(func.coalesce(told, "0"), Integer).label("made")
    query = (
        select(
            quality.c.name,
            made,
            func.array_agg(newest.c.first_segment, type_=_INTEGERS).label("firsts"),
            func.array_agg(newest.c.segments, type_=_INTEGERS).label("lengths"),
            func.max(newest.c.started_at).label("started_at"),
            func.max(newest.c.finished_at).label("finished_at"),
        )
        .select_from(newest)
        .join(quality, true())
        .where(newest.c.is_done)
        .group_by(quality.c.name, made.name)
    )
    current = generations or {}
    return Done(
        {
            row.name: DoneQuality(_longest(row.firsts, row.lengths), row.started_at, row.finished_at)
            for row in await s.execute(query)
            if row.made == current.get(row.name, 0)
        }
    )


def _longest(firsts: list[int], lengths: list[int]) -> dict[int, int]:
    """Keep the longest span of those that begin together: a job that was forgotten is cut anew."""
    return dict(sorted(zip(firsts, lengths, strict=True)))


def _newest(job_id: JobId | int, but: str) -> Subquery:
    """Name the newest attempt of each step. By one sort: a join of the table with itself is at its planner's mercy."""
    is_done = and_(
        JobStep.step == StepName.TRANSCODE,
        JobStep.outcome == StepOutcome.COMPLETED,
        JobStep.first_segment.is_not(None),
        JobStep.segments.is_not(None),
    )
    shown = JobStep.qualities, JobStep.first_segment, JobStep.segments, JobStep.started_at, JobStep.finished_at
    return (
        select(JobStep.id, JobStep.step_key, is_done.label("is_done"), *shown)
        .ext(distinct_on(JobStep.step_key))
        .where(JobStep.job_id == job_id, JobStep.step_key != but)
        .order_by(JobStep.step_key, JobStep.generation.desc(), JobStep.attempt.desc())
        .subquery("newest")
    )
