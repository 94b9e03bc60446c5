"""/api/workers: who there is, and what people do with them.

A worker learns what was decided about it from the answer to its next heartbeat, and hands back its steps then; one that
is dead loses them when its own heartbeats to Temporal run out.
"""

from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from api import worker_keys
from api.bodies import small_json
from api.commands import Actor
from api.errors import ApiError
from api.fields import clean_actor
from api.openapi import errors, json_body, like
from api.parts import Here, Parts
from api.schemas import Listing
from api.schemas_workers import AskKey, Deleted, Registered, Worker, WorkerDetail
from api.security import AdminOnly
from api.videos import ID_LIMIT, Cursor, Limit, cursor_invalid
from api.worker_api import KEEP_IT, NO_STORE
from api.worker_fields import clean_worker_name
from contracts.states import WorkerStatus, WorkerType
from mirror import reads, reads_registry, registry

_UNKNOWN = like(404, "There is no such worker", "WORKER_NOT_FOUND", "There is no worker w-1.")
router = APIRouter(
    prefix="/api/workers", tags=["workers"], dependencies=[AdminOnly], responses=errors(401, 403, 421, 503)
)

Id = Annotated[str, Path(max_length=100, description="The `worker_id`")]


@router.get("", summary="List workers, the newest first", responses=errors(400, 422))
async def list_workers(
    here: Here,
    status: Annotated[WorkerStatus | None, Query(description="Only these")] = None,
    worker_type: Annotated[WorkerType | None, Query(alias="type", description="Only these")] = None,
    name: Annotated[str | None, Query(description="Only those of exactly this name")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Listing[Worker]:
    """Give one page; follow `next_cursor` until it is null."""
    named = clean_worker_name(name) if name is not None else None
    try:
        async with here.database.read() as session:
            page = await reads_registry.workers_page(
                session, limit=limit, cursor=cursor, status=status, worker_type=worker_type, name=named
            )
    except reads.BadCursor as error:
        raise cursor_invalid() from error
    return Listing[Worker](items=tuple(map(Worker.model_validate, page.items)), next_cursor=page.next_cursor)


@router.get("/{worker_id}", summary="One worker", responses=_UNKNOWN | errors(422))
async def get_worker(worker_id: Id, here: Here) -> WorkerDetail:
    """Give one worker with its job, its last steps, and what is known of its keys; never a key or its hash."""
    return await _shown(here, worker_id)


@router.put("/{worker_id}/disable", summary="Give it no more work", responses=_UNKNOWN | errors(422))
async def disable(worker_id: Id, here: Here, actor: Actor = None) -> WorkerDetail:
    """Let a worker finish nothing more: with its next heartbeat it hands back its steps, and others take them.

    It stays disabled whatever it sends, over restarts too, until it is enabled.
    """
    async with here.database.write() as session:
        known = await registry.disable(session, worker_id, clean_actor(actor))
    return await _shown(here, worker_id, known=known)


@router.put(
    "/{worker_id}/enable",
    summary="Let it work again",
    responses=_UNKNOWN
    | errors(422)
    | like(409, "Its keys are revoked", "WORKER_REVOKED", "Every key of this worker was revoked: give it a new one."),
)
async def enable(worker_id: Id, here: Here, actor: Actor = None) -> WorkerDetail:
    """Take back a disable, or let a local worker that was revoked in again. Its next heartbeat says how it is."""
    silent_s = here.settings.worker_offline_threshold_minutes * 60
    async with here.database.write() as session:
        known = await registry.enable(session, worker_id, clean_actor(actor), silent_s=silent_s)
    return await _shown(here, worker_id, known=known)


@router.post("/{worker_id}/revoke", summary="Shut it out", responses=_UNKNOWN | errors(422))
async def revoke(worker_id: Id, here: Here, actor: Actor = None) -> WorkerDetail:
    """Revoke every key of a worker: from its next request on it is answered 401. A local one stops at its next beat."""
    async with here.database.write() as session:
        known = await registry.revoke(session, worker_id, clean_actor(actor))
    return await _shown(here, worker_id, known=known)


@router.delete(
    "/{worker_id}",
    summary="Forget it",
    responses=_UNKNOWN
    | errors(422)
    | like(409, "A local worker that runs", "WORKER_ALIVE", "This worker still runs: stop it first."),
)
async def delete(worker_id: Id, here: Here, actor: Actor = None) -> Deleted:
    """Delete a worker and its keys. Jobs and steps keep saying who did them: `processed_by_worker_*` stays for ever.

    To keep a worker out, disable or revoke it: a local one that is started again registers itself anew.
    """
    alive_s = 2 * here.settings.worker_heartbeat_interval
    async with here.database.write() as session:
        known = await registry.forget(session, worker_id, clean_actor(actor), alive_s=alive_s)
    if not known:
        raise _not_found(worker_id)
    return Deleted(worker_id=worker_id, deleted=True)


@router.post(
    "/{worker_id}/keys",
    status_code=201,
    summary="Give it another key",
    responses=_UNKNOWN
    | errors(422)
    | like(409, "A local worker", "WORKER_LOCAL", "This worker registers itself and needs no key."),
    openapi_extra=json_body(AskKey),
)
async def add_key(worker_id: Id, request: Request, response: Response, here: Here, actor: Actor = None) -> Registered:
    """Make a key beside those a worker has, to change them without a pause: add, tell the worker, revoke the old one.

    A worker whose keys were all revoked is let in again by it; a disabled one stays disabled. A local one, which
    registers itself, is given none.
    """
    asked = await small_json(request, AskKey)
    days = asked.expires_in_days
    key = worker_keys.make_key()
    kept = worker_keys.kept(key, datetime.now(UTC) + timedelta(days=days) if days else None)
    async with here.database.write() as session:
        known = await registry.add_key(session, worker_id, kept, clean_actor(actor))
    if not known:
        raise _not_found(worker_id)
    response.headers.update(NO_STORE)
    return Registered(
        worker_id=worker_id,
        api_key=key,
        key_prefix=kept.key_prefix,
        heartbeat_interval=here.settings.worker_heartbeat_interval,
        message=KEEP_IT,
    )


@router.delete("/{worker_id}/keys/{key_id}", summary="Revoke one key", responses=_UNKNOWN | errors(422))
async def revoke_key(
    worker_id: Id,
    key_id: Annotated[int, Path(ge=1, le=ID_LIMIT, description="The `key_id`")],
    here: Here,
    actor: Actor = None,
) -> WorkerDetail:
    """Revoke one key of a worker; with its last one it is shut out."""
    async with here.database.write() as session:
        known = await registry.revoke_key(session, worker_id, key_id, clean_actor(actor))
    if not known:
        await _shown(here, worker_id)  # which of the two is unknown
        raise ApiError(404, "WORKER_KEY_NOT_FOUND", f"This worker has no key {key_id}.")
    return await _shown(here, worker_id)


async def _shown(here: Parts, worker_id: str, *, known: bool = True) -> WorkerDetail:
    async with here.database.read() as session:
        view = await reads_registry.worker(session, worker_id) if known else None
    if view is None:
        raise _not_found(worker_id)
    return WorkerDetail.model_validate(view)


def _not_found(worker_id: str) -> ApiError:
    return ApiError(404, "WORKER_NOT_FOUND", f"There is no worker {worker_id}.")
