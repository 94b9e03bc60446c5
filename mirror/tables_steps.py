"""Attempts of steps, and what happened, told in lines."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, String, Text, UniqueConstraint, false, func, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from contracts.states import EventLevel, StepName, StepOutcome
from mirror.base import Base, word


class JobStep(Base):
    """One attempt of one step: the finest claim there is. The job's claim is derived from these."""

    __tablename__ = "job_steps"
    __table_args__ = (
        UniqueConstraint("job_id", "step_key", "generation", "attempt", name="uq_job_steps_fence"),
        Index("ix_job_steps_running", "worker_id", postgresql_where=text("finished_at IS NULL")),
        Index("ix_job_steps_worker_id", "worker_id", "id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    job_id: Mapped[int] = mapped_column(ForeignKey("transcoding_jobs.id", ondelete="CASCADE"))
    step: Mapped[StepName] = mapped_column(word(StepName, "step", 50))
    step_key: Mapped[str] = mapped_column(Text)
    qualities: Mapped[list[str]] = mapped_column(server_default=text("'[]'::jsonb"))
    first_segment: Mapped[int | None]
    segments: Mapped[int | None]
    generation: Mapped[int] = mapped_column(server_default="0")
    attempt: Mapped[int] = mapped_column(server_default="1")
    tries: Mapped[int] = mapped_column(server_default="1")  # real tries so far, over generations
    worker_id: Mapped[str | None] = mapped_column(String(100))
    worker_name: Mapped[str | None] = mapped_column(String(100))
    queue: Mapped[str] = mapped_column(String(100), server_default="")
    scheduled_at: Mapped[datetime | None]
    started_at: Mapped[datetime]
    heartbeat_at: Mapped[datetime]
    claim_expires_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]
    outcome: Mapped[StepOutcome] = mapped_column(word(StepOutcome, "outcome"), server_default=StepOutcome.RUNNING)
    will_retry: Mapped[bool] = mapped_column(server_default=false())
    percent: Mapped[float] = mapped_column(server_default="0")
    progress: Mapped[dict[str, Any]] = mapped_column(JSONB, server_default=text("'{}'::jsonb"))  # the last StepProgress
    error_code: Mapped[str | None] = mapped_column(String(50))
    error_message: Mapped[str | None] = mapped_column(Text)
    error_detail: Mapped[str | None] = mapped_column(Text)  # the tail of stderr


class JobEvent(Base):
    """What happened, for people. Without a job it is the audit log."""

    __tablename__ = "job_events"
    __table_args__ = (
        # Telling the same thing twice is one row; a pause and a later pause are two, hence `repeats`.
        Index(
            "uq_job_events_once",
            "job_id",
            "event",
            "step_key",
            "generation",
            "attempt",
            unique=True,
            postgresql_where=text("NOT repeats"),
            postgresql_nulls_not_distinct=True,
        ),
        Index("ix_job_events_job_id", "job_id", "id"),
        Index("ix_job_events_ts", "ts"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    job_id: Mapped[int | None] = mapped_column(ForeignKey("transcoding_jobs.id", ondelete="CASCADE"))
    event: Mapped[str] = mapped_column(String(100))
    level: Mapped[EventLevel] = mapped_column(word(EventLevel, "level"), server_default=EventLevel.INFO)
    message: Mapped[str | None] = mapped_column(Text)
    fields: Mapped[dict[str, Any]] = mapped_column(JSONB, server_default=text("'{}'::jsonb"))
    actor: Mapped[str | None] = mapped_column(String(255))
    step_key: Mapped[str | None] = mapped_column(Text)
    generation: Mapped[int | None]
    attempt: Mapped[int | None]
    repeats: Mapped[bool] = mapped_column(server_default=false())
    # Not now(): events of one transaction would all carry the same instant.
    ts: Mapped[datetime] = mapped_column(server_default=func.clock_timestamp())
