"""What happened, for people, and the bell that tells listeners to look."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import func, select, text
from sqlalchemy.dialects.postgresql import insert

from contracts.states import EventLevel
from mirror.cleaning import clean, jsonable, sentence
from mirror.hooks import Line, queue_deliveries
from mirror.sessions import WriteSession
from mirror.tables import JobEvent

CHANNEL = "vlog"
TOPIC_PROGRESS = "transcode_progress"  # id: the video
TOPIC_COMPLETE = "transcode_complete"  # id: the video; it ended, well or not
TOPIC_WORKERS = "worker_status"  # id: the worker
TOPIC_SIGNED_OUT = "signed_out"  # id: the session; for other processes, nobody else is told


@dataclass(frozen=True)
class Event:
    """One line of a job's story. Told twice it is one row, unless it `repeats`."""

    event: str
    job_id: int | None = None  # None: the audit log
    message: str | None = None
    fields: dict[str, Any] = field(default_factory=dict)
    level: EventLevel = EventLevel.INFO
    actor: str | None = None
    step_key: str | None = None
    generation: int | None = None
    attempt: int | None = None
    repeats: bool = False  # may truly happen again: a pause, a change of priority


async def add_event(s: WriteSession, event: Event) -> None:
    await add_events(s, [event])


async def add_events(s: WriteSession, events: list[Event]) -> None:
    """Write events, and whom they are to be told; what is already told is left as it was first told."""
    for event in events:
        message = sentence(event.message) if event.message else None
        fields = jsonable(event.fields)
        actor = clean(event.actor)[:255] if event.actor else None
        row = insert(JobEvent).values(
            job_id=event.job_id,
            event=event.event,
            level=event.level,
            message=message,
            fields=fields,
            actor=actor,
            step_key=event.step_key,
            generation=event.generation,
            attempt=event.attempt,
            # Without a job there is nothing to be unique within.
            repeats=event.repeats or event.job_id is None,
        )
        told = (await s.execute(row.on_conflict_do_nothing().returning(JobEvent.id, JobEvent.ts))).one_or_none()
        if told is not None:
            line = Line(told.id, event.event, told.ts, event.job_id, message, fields, event.level, actor)
            await queue_deliveries(s, line)


async def notify(s: WriteSession, topic: str, about: int | str) -> None:
    """Ring the one channel; Postgres delivers it when, and only when, this transaction commits."""
    await s.execute(select(func.pg_notify(CHANNEL, json.dumps({"topic": topic, "id": about}))))


_NOTIFY_ALL = text("SELECT pg_notify(:channel, told) FROM unnest(CAST(:told AS text[])) AS told")


async def notify_all(s: WriteSession, topic: str, about: Sequence[int | str]) -> None:
    """Ring once for each, in one round trip."""
    if about:
        told = [json.dumps({"topic": topic, "id": one}) for one in about]
        await s.execute(_NOTIFY_ALL, {"channel": CHANNEL, "told": told})
