"""How fast workers encode, in their own words: every heartbeat of an encode says its speed."""

from collections.abc import Sequence

from sqlalchemy import Float, cast, func, select, true

from contracts.states import StepName, StepOutcome
from mirror.sessions import AnySession
from mirror.tables import JobStep, Worker
from mirror.views import View

_SPEED = cast(JobStep.progress["speed"].astext, Float)


class Speed(View):
    """What one worker encodes in a second, in seconds of video."""

    now: float | None = None  # over everything it encodes at this moment
    last: float | None = None  # of its newest encode that ended well


async def speeds(s: AnySession, worker_ids: Sequence[str]) -> dict[str, Speed]:
    """Read how fast some workers are, in two queries however many they are."""
    now = await s.execute(
        select(JobStep.worker_id, func.sum(_SPEED))
        .where(
            JobStep.worker_id.in_(worker_ids),
            JobStep.step == StepName.TRANSCODE,
            JobStep.finished_at.is_(None),
            JobStep.outcome == StepOutcome.RUNNING,
            JobStep.claim_expires_at > func.now(),
            _SPEED > 0,
        )
        .group_by(JobStep.worker_id)
    )
    newest = (
        select(_SPEED.label("speed"))
        .where(
            JobStep.worker_id == Worker.worker_id,
            JobStep.step == StepName.TRANSCODE,
            JobStep.outcome == StepOutcome.COMPLETED,
            _SPEED > 0,
        )
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
