"""From a queued delivery to its workflow: the rate limit decides once, and whoever gets there first starts it.

Several may carry at once, API processes and housekeeping: one decides at a time, and the same start twice is one.
"""

import json
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import Interval, cast, delete, func, literal, or_, select, text, update

from contracts.webhooks import Carried, Deliver
from mirror.cleaning import clean
from mirror.sessions import AnySession, Database, WriteSession
from mirror.tables import Webhook, WebhookDelivery
from mirror.words import DeliveryStatus

LOCK = 0x766C6F68  # beside the migrations' own
AT_ONCE = 50
BATCHES = 20  # of a storm of alerts nearly all are swallowed; that must not take minutes
OVERDUE = timedelta(minutes=15)  # a delivery that should have been tried so long ago has lost its workflow
KEPT = timedelta(days=30)
FORGET_AT_ONCE = 1000
TEXT_LIMIT = 1000

UNDER_WAY = (DeliveryStatus.PENDING, DeliveryStatus.FAILED)


HandOver = Callable[[Deliver], Awaitable[Carried]]


class DeliveryOutbox:
    def __init__(self, database: Database, hand_over: HandOver) -> None:
        self._database, self._hand_over = database, hand_over

    async def start_waiting(self) -> int:
        """Let what is queued pass the rate limit and start it; stop at once when Temporal is away."""
        async with self._database.read() as session:
            if not await _is_anything_waiting(session):
                return 0
        for _ in range(BATCHES):
            async with self._database.write() as session:
                if await release(session, limit=AT_ONCE) < AT_ONCE:
                    break
        async with self._database.read() as session:
            waiting = await released(session, limit=AT_ONCE)
        return await self._start(waiting)

    async def start_overdue(self) -> int:
        """Start again what Temporal has forgotten; what it ended without a word is given up."""
        async with self._database.read() as session:
            lost = await overdue(session, limit=AT_ONCE)
        return await self._start(lost, were_started=True)

    async def _start(self, asked: Sequence[Deliver], *, were_started: bool = False) -> int:
        started = 0
        for each in asked:
            carried = await self._hand_over(each)
            if carried is Carried.AWAY:
                break
            async with self._database.write() as session:
                if were_started and carried is Carried.ENDED:
                    await give_up(session, each.delivery_id, "Its workflow ended without a word.")
                else:
                    await mark_started(session, each)
            started += 1
        return started


async def _is_anything_waiting(s: AnySession) -> bool:
    return (await s.execute(select(WebhookDelivery.id).where(_waiting()).limit(1))).first() is not None


def _waiting() -> Any:
    return (WebhookDelivery.status == DeliveryStatus.PENDING) & WebhookDelivery.started_at.is_(None)


async def release(s: WriteSession, *, limit: int) -> int:
    """Decide what passes, and give how many were looked at.

    Of one event, one per `rate_limit_seconds` and webhook; the next that passes says how many did not.
    """
    if not (await s.execute(text("SELECT pg_try_advisory_xact_lock(:lock)"), {"lock": LOCK})).scalar_one():
        return 0  # somebody else is deciding
    query = (
        select(WebhookDelivery, Webhook)
        .join(Webhook, Webhook.id == WebhookDelivery.webhook_id)
        .where(_waiting(), WebhookDelivery.released_at.is_(None))
        .order_by(WebhookDelivery.id)
        .limit(limit)
        # The webhooks before any delivery, as a delete of one would. Without their keys: events that are being
        # committed hold on to those.
        .with_for_update(of=Webhook, key_share=True)
    )
    found = (await s.execute(query)).all()
    for row, hook in found:
        suppressed = 0
        # Not for a ping, nor for what a person has asked for again.
        if hook.rate_limit_seconds > 0 and row.event_id is not None and row.round == 1:
            last, is_fresh = await _last_released(s, row, hook)
            if is_fresh:
                row.status = DeliveryStatus.SUPPRESSED
                continue
            suppressed = await _suppressed_since(s, row, last)
        now = (await s.execute(select(func.clock_timestamp()))).scalar_one()
        row.released_at = now
        row.request_body = body_of(row, chat=hook.builtin, suppressed=suppressed)
        hook.last_triggered_at = now
        hook.total_deliveries += 1
        await s.flush()
    return len(found)


async def _last_released(s: WriteSession, row: WebhookDelivery, hook: Webhook) -> tuple[int, bool]:
    """Find the last of this event that passed: its id, and whether that is too short a while ago."""
    cooled = func.clock_timestamp() - cast(literal(timedelta(seconds=hook.rate_limit_seconds)), Interval)
    query = (
        select(WebhookDelivery.id, WebhookDelivery.released_at > cooled)
        .where(WebhookDelivery.webhook_id == row.webhook_id, WebhookDelivery.event_type == row.event_type)
        .where(WebhookDelivery.released_at.is_not(None), WebhookDelivery.event_id.is_not(None))
        .order_by(WebhookDelivery.released_at.desc())
        .limit(1)
    )
    found = (await s.execute(query)).first()
    return (found[0], bool(found[1])) if found else (0, False)


async def _suppressed_since(s: WriteSession, row: WebhookDelivery, last: int) -> int:
    query = select(func.count()).where(
        WebhookDelivery.webhook_id == row.webhook_id,
        WebhookDelivery.event_type == row.event_type,
        WebhookDelivery.status == DeliveryStatus.SUPPRESSED,
        WebhookDelivery.id > last,
        WebhookDelivery.id < row.id,
    )
    return (await s.execute(query)).scalar_one()


def body_of(row: WebhookDelivery, *, chat: bool, suppressed: int = 0) -> str:
    """Write what is sent: the same bytes at every attempt, so that one signature scheme fits them all."""
    sent: dict[str, Any] = {
        "delivery_id": str(row.uid),
        "event": row.event_type,
        "created_at": row.created_at.isoformat(),
        "data": row.event_data,
    }
    if chat:
        sent |= _for_chats(row, suppressed)
    return json.dumps(sent, ensure_ascii=False, separators=(",", ":"))


def _for_chats(row: WebhookDelivery, suppressed: int) -> dict[str, Any]:
    """Add what Slack and Discord show. A title is a stranger's words: it must mention nobody."""
    data = row.event_data
    title = (data.get("video") or {}).get("title")
    told = (
        f"VLog: {row.event_type}" + (f" “{title}”" if title else "") + f": {data.get('message') or 'no more is known.'}"
    )
    if suppressed:
        told += f" ({suppressed} more of these since the last one.)"
    told = clean(told)[:TEXT_LIMIT]
    plain = told.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")  # how Slack wants them
    return {"text": plain, "content": told, "allowed_mentions": {"parse": []}, "suppressed": suppressed}


async def released(s: AnySession, *, limit: int) -> list[Deliver]:
    query = _asked().where(_waiting(), WebhookDelivery.released_at.is_not(None))
    return _all(await s.execute(query.order_by(WebhookDelivery.id).limit(limit)))


async def overdue(s: AnySession, *, limit: int) -> list[Deliver]:
    """List deliveries whose next attempt should long have been."""
    since = func.now() - cast(literal(OVERDUE), Interval)
    query = _asked().where(
        WebhookDelivery.status.in_(UNDER_WAY),
        WebhookDelivery.started_at < since,
        or_(WebhookDelivery.next_retry_at.is_(None), WebhookDelivery.next_retry_at < since),
    )
    return _all(await s.execute(query.order_by(WebhookDelivery.id).limit(limit)))


def _asked() -> Any:
    return select(WebhookDelivery.id, WebhookDelivery.uid, WebhookDelivery.round)


def _all(found: Any) -> list[Deliver]:
    return [Deliver(delivery_id=row.id, uid=str(row.uid), round=row.round) for row in found]


async def mark_started(s: WriteSession, asked: Deliver) -> None:
    """Note that a workflow carries it; not of a round that a person has asked for meanwhile."""
    await s.execute(
        update(WebhookDelivery)
        .where(WebhookDelivery.id == asked.delivery_id, WebhookDelivery.round == asked.round)
        .values(started_at=func.clock_timestamp())
    )


async def give_up(s: WriteSession, delivery_id: int, why: str) -> None:
    """End a delivery that nobody carries any more."""
    mine = select(WebhookDelivery.webhook_id).where(WebhookDelivery.id == delivery_id).scalar_subquery()
    await s.execute(select(Webhook.id).where(Webhook.id == mine).with_for_update(key_share=True))
    ended = await s.execute(
        update(WebhookDelivery)
        .where(WebhookDelivery.id == delivery_id, WebhookDelivery.status.in_(UNDER_WAY))
        .values(status=DeliveryStatus.FAILED_PERMANENT, error_message=why, next_retry_at=None)
        .returning(WebhookDelivery.webhook_id)
    )
    if (webhook_id := ended.scalar_one_or_none()) is not None:
        failed = Webhook.failed_deliveries + 1
        await s.execute(update(Webhook).where(Webhook.id == webhook_id).values(failed_deliveries=failed))


async def forget_old(s: WriteSession) -> int:
    """Drop deliveries that ended long ago, a batch at a time."""
    old = (
        select(WebhookDelivery.id)
        .where(WebhookDelivery.created_at < func.now() - cast(literal(KEPT), Interval))
        .where(WebhookDelivery.status.not_in(UNDER_WAY))
        .limit(FORGET_AT_ONCE)
    )
    dropped = await s.execute(delete(WebhookDelivery).where(WebhookDelivery.id.in_(old)).returning(WebhookDelivery.id))
    return len(dropped.all())
