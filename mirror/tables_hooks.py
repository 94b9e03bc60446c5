"""Who wants to be told of what, and every telling."""

import uuid
from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, String, Text, false, func, text, true
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from mirror.base import Base, word
from mirror.words import DeliveryStatus


class Webhook(Base):
    __tablename__ = "webhooks"
    __table_args__ = (Index("uq_webhooks_builtin", "builtin", unique=True, postgresql_where=text("builtin")),)

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(100))
    url: Mapped[str] = mapped_column(String(500))
    events: Mapped[list[str]]
    secret: Mapped[str | None] = mapped_column(String(64))
    active: Mapped[bool] = mapped_column(server_default=true())
    headers: Mapped[dict[str, Any] | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    updated_at: Mapped[datetime] = mapped_column(server_default=func.now())
    last_triggered_at: Mapped[datetime | None]
    total_deliveries: Mapped[int] = mapped_column(server_default="0")
    successful_deliveries: Mapped[int] = mapped_column(server_default="0")
    failed_deliveries: Mapped[int] = mapped_column(server_default="0")
    # ours
    builtin: Mapped[bool] = mapped_column(server_default=false())  # the alert hook: kept in step with the settings
    rate_limit_seconds: Mapped[float] = mapped_column(server_default="0")  # between two of the same event
    timeout_seconds: Mapped[float] = mapped_column(server_default="10")


class WebhookDelivery(Base):
    """One event for one webhook. Written with the event itself; a workflow carries it from there."""

    __tablename__ = "webhook_deliveries"
    __table_args__ = (
        Index("ix_webhook_deliveries_webhook_id", "webhook_id"),
        Index("ix_webhook_deliveries_status_next_retry_at", "status", "next_retry_at"),
        Index("ix_webhook_deliveries_created_at", "created_at"),
        # What is told twice is one event, and one event is one delivery per webhook and word.
        Index("uq_webhook_deliveries_once", "webhook_id", "event_id", "event_type", unique=True),
        Index(
            "ix_webhook_deliveries_waiting",
            "id",
            postgresql_where=text("status = 'pending' AND started_at IS NULL"),
        ),
        Index(
            "ix_webhook_deliveries_released",
            "webhook_id",
            "event_type",
            "released_at",
            postgresql_where=text("released_at IS NOT NULL"),
        ),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    webhook_id: Mapped[int] = mapped_column(ForeignKey("webhooks.id", ondelete="CASCADE"))
    event_type: Mapped[str] = mapped_column(String(50))
    event_data: Mapped[dict[str, Any]]
    request_body: Mapped[str | None] = mapped_column(Text)
    response_status: Mapped[int | None]
    response_body: Mapped[str | None] = mapped_column(Text)
    error_message: Mapped[str | None] = mapped_column(Text)
    attempt_number: Mapped[int] = mapped_column(server_default="1")
    status: Mapped[DeliveryStatus] = mapped_column(
        word(DeliveryStatus, "status"), server_default=DeliveryStatus.PENDING
    )
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    next_retry_at: Mapped[datetime | None]
    delivered_at: Mapped[datetime | None]
    duration_ms: Mapped[int | None]
    # ours
    uid: Mapped[uuid.UUID] = mapped_column(unique=True, server_default=text("gen_random_uuid()"))
    event_id: Mapped[int | None]  # of `job_events`; a ping has none
    released_at: Mapped[datetime | None]  # the rate limit let it pass
    started_at: Mapped[datetime | None]  # its workflow runs
    round: Mapped[int] = mapped_column(server_default="1")
    # Each attempt: round, attempt, at, status, error, duration_ms. The last ones, if there were many.
    attempts: Mapped[list[Any]] = mapped_column(JSONB, server_default=text("'[]'::jsonb"))
