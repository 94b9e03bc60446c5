"""/api/worker/…: what machines say. Registering is a person's deed, with a secret; all else is by a worker's key."""

import uuid

import structlog
from fastapi import APIRouter, Request, Response

from api import worker_keys
from api.bodies import small_json
from api.commands import Actor
from api.fields import clean_actor
from api.openapi import errors, json_body, like
from api.parts import Here, Parts
from api.schemas_workers import Beat, Beaten, Registered, Registration
from api.security import RegistrarOnly
from api.worker_auth import HEADER, ByKey, Caller, refusal, signs_of
from api.worker_fields import clean_about, clean_reason, clean_version, clean_worker_name
from api.worker_steps import recorder_of
from contracts.states import WorkerStanding, WorkerStatus
from mirror import registry, writes_quarantine, writes_workers
from mirror.registry import NewWorker

log = structlog.get_logger(__name__)

router = APIRouter(prefix="/api/worker", tags=["workers"])

KEEP_IT = f"Give this key to the worker, which sends it as {HEADER}. It is not shown again."
NO_STORE = {"Cache-Control": "no-store"}

_BAD_BODY = like(400, "What is said of the worker cannot be kept", "CAPABILITIES_TOO_LARGE", "capabilities: too large.")
_TOO_LARGE = like(413, "The body is too large", "REQUEST_TOO_LARGE", "This takes at most 65536 bytes of JSON.")


@router.post(
    "/register",
    status_code=201,
    summary="Register a worker",
    dependencies=[RegistrarOnly],
    responses=_BAD_BODY | _TOO_LARGE | errors(401, 403, 408, 421, 422, 503),
    openapi_extra=json_body(Registration),
)
async def register(request: Request, response: Response, here: Here, actor: Actor = None) -> Registered:
    """Make a worker known and give it a key, which is shown this once.

    With neither `VLOG_WORKER_ADMIN_SECRET` nor `VLOG_ADMIN_SECRET` set the service listens on loopback only, and who
    is on this machine may register. Local workers register themselves and need no key.
    """
    asked = await small_json(request, Registration)
    new = NewWorker(
        worker_id=str(uuid.uuid4()),
        worker_name=clean_worker_name(asked.worker_name),
        worker_type=asked.worker_type,
        capabilities=clean_about(asked.capabilities, "capabilities"),
        metadata=clean_about(asked.metadata, "metadata"),
        version=clean_version(asked.version),
    )
    key = worker_keys.make_key()
    kept = worker_keys.kept(key)
    async with here.database.write() as session:
        await registry.admit(session, new, kept, clean_actor(actor))
    log.info("worker_registered", worker_id=new.worker_id, worker_name=new.worker_name, key_prefix=kept.key_prefix)
    response.headers.update(NO_STORE)
    return Registered(
        worker_id=new.worker_id,
        api_key=key,
        key_prefix=kept.key_prefix,
        heartbeat_interval=here.settings.worker_heartbeat_interval,
        message=KEEP_IT,
    )


@router.post(
    "/heartbeat",
    summary="A worker's sign of life",
    responses=_BAD_BODY
    | _TOO_LARGE
    | errors(408, 421, 422, 503)
    | like(401, "The key is missing, unknown, expired or revoked", "WORKER_KEY_INVALID", "This key is nobody's.")
    | like(403, "A person disabled it", "WORKER_DISABLED", "This worker is disabled: it gets no work until …"),
    openapi_extra=json_body(Beat),
)
async def heartbeat(request: Request, here: Here, caller: ByKey) -> Beaten:
    """Say that a worker lives, whether it has a free slot, and what changed about it; learn how it stands.

    Who waits for an answer of `claim` need not: the API knows that it lives, and that answer says when it is shut out.
    A disabled worker is answered 403 and should go on beating: the first 200 says that it was enabled. A 401 is for
    good: it needs a new key. Either way it takes no more work and hands back what it has. One whose own test fails says
    which pools it sets aside, and is reminded of them when it is started again.
    """
    beat = await small_json(request, Beat)
    if (stands := caller.stands) is not None and _says_nothing_new(beat, stands.status):
        signs_of(request).beats(caller.worker_id)
        return _answer(here, caller, stands)
    changes = {
        name: value
        for name, value in {
            "capabilities": beat.capabilities and clean_about(beat.capabilities, "capabilities"),
            "about": beat.metadata and clean_about(beat.metadata, "metadata"),
            "version": clean_version(beat.version),
        }.items()
        if value is not None
    }
    if beat.status == "offline":
        signs_of(request).left(caller.worker_id)
        await recorder_of(request).settled(caller.worker_id)
    async with here.database.write() as session:
        if beat.pools_aside is not None:
            why = clean_reason(beat.aside_because)
            await writes_quarantine.set_pools_aside(session, caller.worker_id, beat.pools_aside, why)
        beaten = await writes_workers.take_beat(session, caller.worker_id, WorkerStatus(beat.status), changes)
        if beat.status == "offline":
            await writes_workers.worker_gone(session, caller.worker_id)
    if beaten is None:
        raise refusal(WorkerStanding.UNKNOWN)
    if beaten.standing is not WorkerStanding.WELCOME:
        raise refusal(beaten.standing)
    return _answer(here, caller, beaten)


def _says_nothing_new(beat: Beat, status: WorkerStatus) -> bool:
    """Tell whether a beat says only that its worker lives and is what it was: it is written with those of others."""
    is_there = status in (WorkerStatus.ACTIVE, WorkerStatus.IDLE, WorkerStatus.BUSY)
    return is_there and beat.status in (status, WorkerStatus.ACTIVE) and beat == Beat(status=beat.status)


def _answer(here: Parts, caller: Caller, stands: writes_workers.Beaten) -> Beaten:
    return Beaten(
        worker_id=caller.worker_id,
        standing=stands.standing,
        status=stands.status,
        current_job_id=stands.current_job_id,
        server_time=stands.at,
        heartbeat_interval=here.settings.worker_heartbeat_interval,
        offline_after=here.settings.worker_offline_threshold_minutes * 60,
        pools_aside=stands.pools_aside,
    )
