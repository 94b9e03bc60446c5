"""From a line of the event log to the deliveries that tell the outside of it, in the line's own transaction.

So nothing is told that was not committed, and nothing that was committed goes untold, whoever dies next. Only rows are
added here: no lock is taken that another job's writer would wait for, and nobody is called.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, and_, func, select
from sqlalchemy.dialects.postgresql import insert

from contracts.states import EventLevel
from contracts.webhooks import HEARD_OF, told_as, wants
from mirror.cleaning import jsonable
from mirror.sessions import WriteSession
from mirror.tables import Job, Video, Webhook, WebhookDelivery

# A key of `session.info`: what is told again, from Temporal's histories, was delivered when it happened.
TOLD_BEFORE = "vlog.told_before"

_VIDEO = (
    *(Video.id.label("video_id"), Video.slug, Video.title, Video.owner, Video.status, Video.duration),
    *(Video.error_code, Video.error_message),
)


@dataclass(frozen=True)
class Line:
    """A row of `job_events` that has just been added."""

    event_id: int
    event: str
    ts: datetime
    job_id: int | None
    message: str | None
    fields: dict[str, Any]
    level: EventLevel
    actor: str | None


async def queue_deliveries(s: WriteSession, line: Line) -> None:
    """Add a delivery for each webhook that wants to hear of this line."""
    if line.event not in HEARD_OF or s.info.get(TOLD_BEFORE):
        return
    # Shared with everybody but a delete: one that comes meanwhile would break the reference, and with it the job's end.
    active = select(Webhook.id, Webhook.events).where(Webhook.active).with_for_update(read=True, key_share=True)
    hooks = (await s.execute(active)).all()
    if not hooks:
        return
    about = await _about(s, line.job_id)
    names = told_as(
        line.event,
        kind=about.kind if about else None,
        status=about.status if about else None,
        code=line.fields.get("code"),
        failed_jobs=await _failed_jobs(s, about.video_id) if about and line.event == "job.failed" else 0,
    )
    data = jsonable(_data(line, about))
    for hook in hooks:
        for name in names:
            if wants(hook.events, name):
                row = insert(WebhookDelivery).values(
                    webhook_id=hook.id, event_id=line.event_id, event_type=name, event_data=data
                )
                await s.execute(row.on_conflict_do_nothing())


async def _about(s: WriteSession, job_id: int | None) -> Row[*tuple[Any, ...]] | None:
    """Read the job's and its video's columns: the rows themselves belong to whoever is writing them."""
    if job_id is None:
        return None
    columns = (*(Job.id.label("job_id"), Job.kind, Job.attempt_number, Job.max_attempts), *_VIDEO)
    found = await s.execute(select(*columns).join(Video, Video.id == Job.video_id).where(Job.id == job_id))
    return found.first()


async def _failed_jobs(s: WriteSession, video_id: int) -> int:
    failed = and_(Job.last_error.is_not(None), Job.attempt_number >= Job.max_attempts)
    neither = and_(Job.completed_at.is_(None), Job.cancelled_at.is_(None))
    query = select(func.count()).select_from(Job).where(Job.video_id == video_id, failed, neither)
    return (await s.execute(query)).scalar_one()


def _data(line: Line, about: Row[*tuple[Any, ...]] | None) -> dict[str, Any]:
    data: dict[str, Any] = {
        "event_id": line.event_id,
        "happened_at": line.ts.isoformat(),
        "level": line.level.value,
        "message": line.message,
        "actor": line.actor,
        "fields": line.fields,
    }
    if about is not None:
        data["job"] = {name: getattr(about, name) for name in ("job_id", "kind", "attempt_number", "max_attempts")}
        data["video"] = {column.key: getattr(about, column.key) for column in _VIDEO}
    return data
