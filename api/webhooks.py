"""/api/webhooks: who wants to be told of what, and what became of every telling."""

import secrets
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Query, Response

from api.commands import Actor
from api.errors import ApiError
from api.fields import clean_actor
from api.openapi import errors
from api.parts import Here
from api.schemas import Listing
from api.schemas_webhooks import ChangedWebhook, Delivery, DeliveryDetail, NewWebhook, RegisteredWebhook, Webhook
from api.security import AdminOnly
from api.videos import ID_LIMIT, Cursor, Limit, cursor_invalid
from mirror import reads_hooks, writes_hooks
from mirror.cursors import BadCursor
from mirror.events import Event, add_event
from mirror.reads_hooks import DeliveryView, WebhookView
from mirror.sessions import AnySession, WriteSession
from mirror.words import DeliveryStatus

MOST = 100  # each event asks all of them

router = APIRouter(
    prefix="/api/webhooks", tags=["webhooks"], dependencies=[AdminOnly], responses=errors(401, 403, 421, 422, 503)
)

Id = Annotated[int, Path(ge=1, le=ID_LIMIT, description="The webhook's number")]
Uid = Annotated[UUID, Path(description="The delivery's id, as the receiver got it")]


async def _known(session: AnySession, webhook_id: int) -> WebhookView:
    view = await reads_hooks.webhook(session, webhook_id)
    if view is None:
        raise ApiError(404, "WEBHOOK_NOT_FOUND", f"There is no webhook {webhook_id}.")
    return view


async def _ours_to_change(session: AnySession, webhook_id: int) -> WebhookView:
    view = await _known(session, webhook_id)
    if view.builtin:
        detail = "The alert hook is what VLOG_ALERT_WEBHOOK_URL and its neighbours say; change it there."
        raise ApiError(409, "WEBHOOK_BUILTIN", detail)
    return view


async def _known_delivery(session: AnySession, webhook_id: int, uid: UUID) -> DeliveryView:
    await _known(session, webhook_id)
    view = await reads_hooks.delivery(session, webhook_id, uid)
    if view is None:
        raise ApiError(404, "DELIVERY_NOT_FOUND", f"Webhook {webhook_id} has no delivery {uid}.")
    return view


async def _note(session: WriteSession, event: str, view: WebhookView, actor: str | None, done: str) -> None:
    fields = {"webhook_id": view.webhook_id, "name": view.name}  # never the address: it may be a password
    await add_event(session, Event(event, None, f"Webhook “{view.name}” was {done}.", fields, actor=actor))


@router.post("", status_code=201, summary="Register a webhook", responses=errors(409))
async def register(wanted: NewWebhook, here: Here, actor: Actor = None) -> RegisteredWebhook:
    """Register who is to be told of what. The secret is in this answer and in no other."""
    secret = wanted.secret or secrets.token_hex(32)
    async with here.database.write() as session:
        if await reads_hooks.registered_webhooks(session) >= MOST:
            raise ApiError(409, "WEBHOOKS_TOO_MANY", f"There are {MOST} webhooks already.")
        given = wanted.model_dump() | {"events": list(wanted.events), "secret": secret}
        view = await _known(session, await writes_hooks.add_webhook(session, **given))
        await _note(session, "webhook.created", view, clean_actor(actor), "registered")
    return RegisteredWebhook.of(view, secret=secret)


@router.get("", summary="List webhooks")
async def list_webhooks(here: Here) -> list[Webhook]:
    """Give all of them, the alert hook of the settings among them."""
    async with here.database.read() as session:
        return [Webhook.of(view) for view in await reads_hooks.webhooks(session)]


@router.get("/{webhook_id}", summary="One webhook", responses=errors(404))
async def get_webhook(webhook_id: Id, here: Here) -> Webhook:
    async with here.database.read() as session:
        return Webhook.of(await _known(session, webhook_id))


@router.patch("/{webhook_id}", summary="Change a webhook", responses=errors(404, 409))
async def change(webhook_id: Id, wanted: ChangedWebhook, here: Here, actor: Actor = None) -> Webhook:
    """Change what is given. One that is switched off hears of nothing, and gets nothing later of that time."""
    given = {name: value for name, value in wanted.model_dump(exclude_unset=True).items() if value is not None}
    if "events" in given:
        given["events"] = list(given["events"])
    async with here.database.write() as session:
        await _ours_to_change(session, webhook_id)
        await writes_hooks.change_webhook(session, webhook_id, **given)
        session.expire_all()
        view = await _known(session, webhook_id)
        await _note(session, "webhook.changed", view, clean_actor(actor), f"changed: {', '.join(given) or 'nothing'}")
    return Webhook.of(view)


@router.delete("/{webhook_id}", status_code=204, summary="Delete a webhook", responses=errors(404, 409))
async def delete(webhook_id: Id, here: Here, actor: Actor = None) -> Response:
    """Delete it and its deliveries; one that is under way is not tried again."""
    async with here.database.write() as session:
        view = await _ours_to_change(session, webhook_id)
        await writes_hooks.delete_webhook(session, webhook_id)
        await _note(session, "webhook.deleted", view, clean_actor(actor), "deleted")
    return Response(status_code=204)


@router.post("/{webhook_id}/test", status_code=202, summary="Try it out", responses=errors(404, 409))
async def test(webhook_id: Id, here: Here) -> Delivery:
    """Send the event `ping`, as any other is sent; ask for the delivery to see what came of it."""
    async with here.database.write() as session:
        if not (await _known(session, webhook_id)).active:
            raise ApiError(409, "WEBHOOK_INACTIVE", f"Webhook {webhook_id} is switched off.")
        uid = await writes_hooks.add_ping(session, webhook_id)
        return Delivery.of(await _known_delivery(session, webhook_id, uid))


@router.get("/{webhook_id}/deliveries", summary="Its deliveries, newest first", responses=errors(400, 404))
async def list_deliveries(
    webhook_id: Id,
    here: Here,
    status: Annotated[DeliveryStatus | None, Query(description="Only these")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Listing[Delivery]:
    """Give one page. Deliveries that ended are kept for 30 days."""
    try:
        async with here.database.read() as session:
            await _known(session, webhook_id)
            page = await reads_hooks.deliveries_page(session, webhook_id, status=status, limit=limit, cursor=cursor)
    except BadCursor as error:
        raise cursor_invalid() from error
    return Listing[Delivery](items=tuple(map(Delivery.of, page.items)), next_cursor=page.next_cursor)


@router.get("/{webhook_id}/deliveries/{delivery_id}", summary="One delivery", responses=errors(404))
async def get_delivery(webhook_id: Id, delivery_id: Uid, here: Here) -> DeliveryDetail:
    async with here.database.read() as session:
        return DeliveryDetail.of(await _known_delivery(session, webhook_id, delivery_id))


@router.post(
    "/{webhook_id}/deliveries/{delivery_id}/retry",
    status_code=202,
    summary="Deliver it again",
    responses=errors(404, 409),
)
async def retry_delivery(webhook_id: Id, delivery_id: Uid, here: Here) -> Delivery:
    """Send the same again under the same id, whatever became of it before."""
    async with here.database.write() as session:
        view = await _known_delivery(session, webhook_id, delivery_id)
        if not await writes_hooks.redeliver(session, view.id):
            raise ApiError(409, "DELIVERY_UNDER_WAY", "It is being delivered already.")
        session.expire_all()
        return Delivery.of(await _known_delivery(session, webhook_id, delivery_id))
