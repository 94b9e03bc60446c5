"""How fast workers encode: pictures made by the time they took, fetching and seeking included."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Float, cast, func, select, true

from contracts.states import StepName, StepOutcome
from mirror.sessions import AnySession
from mirror.tables import Job, JobStep, Worker
from mirror.views import View

_FRAMES = cast(JobStep.progress["frames"].astext, Float)
# An encode that found everything stored already says nothing of its speed.
_ENCODES = (JobStep.step == StepName.TRANSCODE, _FRAMES > 0)


class Speed(View):
    """What one worker encodes in a second, in seconds of video."""

    now: float | None = None  # over everything it encodes at this moment
    last: float | None = None  # of its newest encode that ended well


async def speeds(s: AnySession, worker_ids: Sequence[str]) -> dict[str, Speed]:
    """Read how fast some workers are, in two queries however many they are."""
    now = await s.execute(
        select(JobStep.worker_id, func.sum(_speed(JobStep.heartbeat_at)))
        .join(Job, Job.id == JobStep.job_id)
        .where(
            *_ENCODES,
            JobStep.worker_id.in_(worker_ids),
            JobStep.finished_at.is_(None),
            JobStep.outcome == StepOutcome.RUNNING,
            JobStep.claim_expires_at > func.now(),
        )
        .group_by(JobStep.worker_id)
    )
    newest = (
        select(_speed(JobStep.finished_at).label("speed"))
        .join(Job, Job.id == JobStep.job_id)
        .where(*_ENCODES, JobStep.worker_id == Worker.worker_id, JobStep.outcome == StepOutcome.COMPLETED)
        .order_by(JobStep.id.desc())
        .limit(1)
        .correlate(Worker)
        .lateral()
    )
    last = await s.execute(
        select(Worker.worker_id, newest.c.speed).join(newest, true()).where(Worker.worker_id.in_(worker_ids))
    )
    going, ended = {row[0]: row[1] for row in now}, {row[0]: row[1] for row in last}
    return {each: Speed(now=going.get(each), last=ended.get(each)) for each in worker_ids}


def _speed(until: Any) -> ColumnElement[Any]:
    rate = Job.plan["grid"]["frame_rate"]
    a_second = cast(rate["num"].astext, Float) / func.nullif(cast(rate["den"].astext, Float), 0)
    took = cast(func.extract("epoch", until - JobStep.started_at), Float)
    return _FRAMES / a_second / func.nullif(took, 0)
