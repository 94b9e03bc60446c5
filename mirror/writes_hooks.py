"""Webhooks: registered, changed, tried out; and what became of each attempt to tell one."""

import uuid
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, func, select, text, update
from sqlalchemy.dialects.postgresql import insert

from contracts.webhooks import PING, Outcome, RecordAttempt
from mirror.cleaning import clean, jsonable, sentence
from mirror.sessions import AnySession, WriteSession
from mirror.tables import Webhook, WebhookDelivery
from mirror.words import DeliveryStatus

ATTEMPTS_KEPT = 50
ALERT_HOOK = "VLOG_ALERT_WEBHOOK_URL"


@dataclass(frozen=True)
class Envelope:
    """What is needed to post a delivery once."""

    uid: str
    event: str
    url: str
    headers: dict[str, str]
    secret: str | None
    body: str
    timeout_s: float


async def envelope(s: AnySession, delivery_id: int) -> Envelope | None:
    """Read what is to be posted; None when its webhook is gone or switched off."""
    query = (
        select(WebhookDelivery.uid, WebhookDelivery.event_type, WebhookDelivery.request_body)
        .add_columns(Webhook.url, Webhook.headers, Webhook.secret, Webhook.timeout_seconds)
        .join(Webhook, Webhook.id == WebhookDelivery.webhook_id)
        .where(WebhookDelivery.id == delivery_id, Webhook.active, WebhookDelivery.request_body.is_not(None))
    )
    row = (await s.execute(query)).first()
    if row is None:
        return None
    headers = {str(name): str(value) for name, value in (row.headers or {}).items()}
    return Envelope(
        *(str(row.uid), row.event_type, row.url, headers, row.secret, row.request_body, row.timeout_seconds)
    )


async def record_attempt(s: WriteSession, told: RecordAttempt) -> bool:
    """Note what became of an attempt, once; False when no further one is wanted."""
    found = select(WebhookDelivery.webhook_id).where(WebhookDelivery.id == told.delivery_id)
    webhook_id = (await s.execute(found)).scalar_one_or_none()
    if webhook_id is None:
        return False
    # The webhook first, as a delete of it would: its deliveries go after it.
    # Without its key: events that are being committed hold on to that, and must not wait.
    mine = select(Webhook).where(Webhook.id == webhook_id).with_for_update(key_share=True)
    hook = (await s.execute(mine)).scalar_one_or_none()
    locked = select(WebhookDelivery).where(WebhookDelivery.id == told.delivery_id).with_for_update()
    row = (await s.execute(locked)).scalar_one_or_none()
    if hook is None or row is None:
        return False
    done = [(entry["round"], entry["attempt"]) for entry in row.attempts]
    if (told.round, told.attempt) in done or row.round != told.round:
        return row.round == told.round and row.status is DeliveryStatus.FAILED
    posted = told.posted
    again = told.next_try_at is not None and hook.active
    entry = {
        "round": told.round,
        "attempt": told.attempt,
        "at": told.at.isoformat(),
        "status": posted.status,
        "error": posted.error,
        "duration_ms": posted.duration_ms,
    }
    row.attempts = [*row.attempts, jsonable(entry)][-ATTEMPTS_KEPT:]
    row.attempt_number = told.attempt
    row.response_status = posted.status
    row.response_body = clean(posted.body) or None
    row.error_message = sentence(posted.error) if posted.error else None
    row.duration_ms = posted.duration_ms
    row.next_retry_at = told.next_try_at if again else None
    if posted.outcome is Outcome.DELIVERED:
        row.status, row.delivered_at = DeliveryStatus.DELIVERED, told.at
        hook.successful_deliveries += 1
    elif again:
        row.status = DeliveryStatus.FAILED
    else:
        row.status = DeliveryStatus.FAILED_PERMANENT
        hook.failed_deliveries += 1
        if told.next_try_at is not None:  # nobody will carry it on, also when it is switched on again
            row.error_message = sentence(f"{posted.error or 'It failed.'} The webhook is switched off.")
    await s.flush()
    return again


async def keep_alert_hook(
    s: WriteSession, url: str | None, events: tuple[str, ...], *, rate_limit_s: float, timeout_s: float
) -> None:
    """Let the alert hook's row say what the settings say; without an address it is switched off."""
    if url is None:
        await s.execute(update(Webhook).where(Webhook.builtin, Webhook.active).values(active=False))
        return
    wanted: dict[str, Any] = {
        "url": url,
        "events": list(events),
        "active": True,
        "rate_limit_seconds": rate_limit_s,
        "timeout_seconds": timeout_s,
    }
    put = insert(Webhook).values(name=ALERT_HOOK, builtin=True, **wanted)
    again = {**wanted, "updated_at": func.now()}
    await s.execute(put.on_conflict_do_update(index_elements=["builtin"], index_where=text("builtin"), set_=again))


async def add_webhook(s: WriteSession, **values: Any) -> int:
    return (await s.execute(insert(Webhook).values(**values).returning(Webhook.id))).scalar_one()


async def change_webhook(s: WriteSession, webhook_id: int, **values: Any) -> None:
    changed = {**values, "updated_at": func.now()}
    await s.execute(update(Webhook).where(Webhook.id == webhook_id).values(**changed))


async def delete_webhook(s: WriteSession, webhook_id: int) -> None:
    """Remove a webhook and its deliveries: an attempt that is due finds nothing to post."""
    await s.execute(delete(Webhook).where(Webhook.id == webhook_id))


async def add_ping(s: WriteSession, webhook_id: int) -> uuid.UUID:
    """Queue a delivery that tells of nothing, to try an address out."""
    data = {"message": "Somebody asked for a test of this webhook."}
    row = insert(WebhookDelivery).values(webhook_id=webhook_id, event_type=PING, event_data=data)
    return (await s.execute(row.returning(WebhookDelivery.uid))).scalar_one()


async def redeliver(s: WriteSession, delivery_id: int) -> bool:
    """Let a delivery that has ended go out once more, the same bytes under the same id; False when one is under way."""
    again = await s.execute(
        update(WebhookDelivery)
        .where(WebhookDelivery.id == delivery_id)
        .where(WebhookDelivery.status.not_in([DeliveryStatus.PENDING, DeliveryStatus.FAILED]))
        .values(
            status=DeliveryStatus.PENDING,
            round=WebhookDelivery.round + 1,
            started_at=None,
            delivered_at=None,
            next_retry_at=None,
        )
        .returning(WebhookDelivery.id)
    )
    return again.scalar_one_or_none() is not None
