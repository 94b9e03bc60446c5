"""Questions about webhooks and their deliveries, and about the event log as a whole."""

import uuid
from datetime import datetime
from typing import Any

from sqlalchemy import func, select

from contracts.states import EventLevel
from mirror.cursors import cursor_of, id_of
from mirror.sessions import AnySession
from mirror.showing import show_event
from mirror.tables import JobEvent, Webhook, WebhookDelivery
from mirror.views import EventView, Page, View
from mirror.words import DeliveryStatus


class WebhookView(View):
    webhook_id: int
    name: str
    url: str
    events: tuple[str, ...]
    active: bool
    builtin: bool
    headers: dict[str, str]
    has_secret: bool
    rate_limit_seconds: float
    timeout_seconds: float
    created_at: datetime
    updated_at: datetime
    last_triggered_at: datetime | None
    total_deliveries: int
    successful_deliveries: int
    failed_deliveries: int


class DeliveryView(View):
    id: int
    delivery_id: uuid.UUID
    webhook_id: int
    event: str
    status: DeliveryStatus
    created_at: datetime
    next_retry_at: datetime | None
    delivered_at: datetime | None
    attempt_number: int
    response_status: int | None
    response_body: str | None
    error_message: str | None
    duration_ms: int | None
    attempts: tuple[dict[str, Any], ...]
    request_body: str | None


async def webhooks(s: AnySession) -> list[WebhookView]:
    return [_show(row) for row in (await s.execute(select(Webhook).order_by(Webhook.id))).scalars()]


async def webhook(s: AnySession, webhook_id: int) -> WebhookView | None:
    row = (await s.execute(select(Webhook).where(Webhook.id == webhook_id))).scalar_one_or_none()
    return _show(row) if row else None


async def registered_webhooks(s: AnySession) -> int:
    query = select(func.count()).select_from(Webhook).where(Webhook.builtin.is_(False))
    return (await s.execute(query)).scalar_one()


async def delivery(s: AnySession, webhook_id: int, uid: uuid.UUID) -> DeliveryView | None:
    query = select(WebhookDelivery).where(WebhookDelivery.uid == uid, WebhookDelivery.webhook_id == webhook_id)
    row = (await s.execute(query)).scalar_one_or_none()
    return _show_delivery(row) if row else None


async def deliveries_page(
    s: AnySession, webhook_id: int, *, status: DeliveryStatus | None, limit: int, cursor: str | None
) -> Page[DeliveryView]:
    """List deliveries of a webhook, newest first."""
    query = select(WebhookDelivery).where(WebhookDelivery.webhook_id == webhook_id, WebhookDelivery.id < id_of(cursor))
    if status is not None:
        query = query.where(WebhookDelivery.status == status)
    rows = (await s.execute(query.order_by(WebhookDelivery.id.desc()).limit(limit + 1))).scalars().all()
    more = len(rows) > limit
    return Page[DeliveryView](
        items=tuple(_show_delivery(row) for row in rows[:limit]),
        next_cursor=cursor_of(rows[limit - 1].id) if more else None,
    )


async def events_page(
    s: AnySession,
    *,
    event: str | None = None,
    level: EventLevel | None = None,
    actor: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    jobs: bool = True,
    limit: int = 50,
    cursor: str | None = None,
) -> Page[EventView]:
    """List what happened anywhere, newest first; without `jobs` only the audit log."""
    query = select(JobEvent).where(JobEvent.id < id_of(cursor))
    if event is not None:
        whole = JobEvent.event == event
        query = query.where(JobEvent.event.startswith(event, autoescape=True) if event.endswith(".") else whole)
    if level is not None:
        query = query.where(JobEvent.level == level)
    if actor is not None:
        query = query.where(JobEvent.actor == actor)
    if since is not None:
        query = query.where(JobEvent.ts >= since)
    if until is not None:
        query = query.where(JobEvent.ts < until)
    if not jobs:
        query = query.where(JobEvent.job_id.is_(None))
    rows = (await s.execute(query.order_by(JobEvent.id.desc()).limit(limit + 1))).scalars().all()
    more = len(rows) > limit
    return Page[EventView](
        items=tuple(show_event(row) for row in rows[:limit]),
        next_cursor=cursor_of(rows[limit - 1].id) if more else None,
    )


def _show(row: Webhook) -> WebhookView:
    given = {name: getattr(row, name) for name in WebhookView.model_fields if hasattr(row, name)}
    headers = {str(name): str(value) for name, value in (row.headers or {}).items()}
    return WebhookView(**{**given, "webhook_id": row.id, "headers": headers, "has_secret": bool(row.secret)})


def _show_delivery(row: WebhookDelivery) -> DeliveryView:
    given = {name: getattr(row, name) for name in DeliveryView.model_fields if hasattr(row, name)}
    return DeliveryView(**{**given, "delivery_id": row.uid, "event": row.event_type})
