"""Which worker speaks: by its key alone. Whatever else a request says about who sends it is not believed."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, cast

import structlog
from fastapi import Depends, Request

from api import worker_keys
from api.errors import ApiError, database_away, is_database_away
from api.known_keys import KnownKeys
from api.parts import Parts, parts_of
from api.signs import SignsOfLife
from contracts.gateway import KEY_HEADER
from contracts.queues import ENCODERS
from contracts.states import WorkerStanding
from mirror import reads_registry
from mirror.claims import WorkerIdentity
from mirror.views_workers import StoredKey
from mirror.writes_workers import Beaten, standing_of

log = structlog.get_logger(__name__)

HEADER = KEY_HEADER
ANSWER_S = 2.0  # a running step must be heard before its worker gives the call up


@dataclass(frozen=True)
class Caller:
    """A worker that showed its key. It may be disabled, and the key revoked or expired, all the same."""

    worker_id: str
    name: str  # for people, in Temporal too; its id where it has none
    is_disabled: bool
    slots: Mapping[str, int]  # by task queue, as it told them
    refusal: ApiError | None = None  # its key is good no more
    stands: Beaten | None = None  # as its row was just read; none of who was silent, or while Postgres is away

    @property
    def identity(self) -> WorkerIdentity:
        return WorkerIdentity(self.worker_id, self.name, self.slots)


async def _known(request: Request) -> Caller:
    """Find the worker by its key, whatever has become of that; any doubt is a 401."""
    here = parts_of(request)
    said = [value.strip(" \t") for value in request.headers.getlist(HEADER)]
    if not said or not said[0]:
        raise ApiError(401, "WORKER_KEY_REQUIRED", f"Send the worker's key in the {HEADER} header.")
    prefix = worker_keys.prefix_of(said[0])
    # Of two keys a proxy may have looked at one and we at the other.
    if prefix is None or len(said) > 1:
        raise _invalid()
    key_hash = worker_keys.hashed(said[0])
    known: KnownKeys[Caller] = request.app.state.known_keys
    try:
        candidates = await _candidates(here, known, prefix)
    except Exception as error:
        if not is_database_away(error):
            raise
        known.database_away()
        # What runs goes on without Postgres; who was let in a moment ago is let in still.
        if (caller := known.recall(key_hash)) is None:
            raise database_away() from error
        return caller
    known.forget(key_hash)  # until it has passed
    key = worker_keys.matching(key_hash, candidates)
    if key is None:
        log.debug("worker_key_unknown", key_prefix=prefix)
        raise _invalid()
    name = key.worker_name or key.worker_id
    caller = Caller(
        key.worker_id, name, key.is_disabled, _slots(key.slots), stands=_stands(key) if key.heard_lately else None
    )
    # Only who has the whole key learns what became of it.
    if key.is_revoked:
        return replace(caller, refusal=refusal(WorkerStanding.REVOKED))
    if key.has_expired:
        sentence = "This key has expired: the worker needs a new one."
        return replace(caller, refusal=ApiError(401, "WORKER_KEY_EXPIRED", sentence))
    known.let_in(key_hash, replace(caller, stands=None))
    if key.used_long_ago:
        signs_of(request).uses(key.worker_id, key.key_id)
    return caller


async def _candidates(here: Parts, known: KnownKeys[Caller], prefix: str) -> list[StoredKey]:
    if known.is_database_away:  # a moment ago: not everybody has to find out
        raise OSError("Postgres is away")
    async with asyncio.timeout(ANSWER_S), here.database.glance() as glance:
        return await reads_registry.keys_like(glance, prefix)


def signs_of(request: Request) -> SignsOfLife:
    return cast(SignsOfLife, request.app.state.signs)


def refusal(standing: WorkerStanding) -> ApiError:
    """Say no to a worker that is not welcome."""
    match standing:
        case WorkerStanding.DISABLED:
            sentence = "This worker is disabled: it gets no work until somebody enables it."
            return ApiError(403, "WORKER_DISABLED", sentence)
        case WorkerStanding.REVOKED:
            return ApiError(401, "WORKER_KEY_REVOKED", "This key was revoked: the worker needs a new one.")
        case _:  # deleted since its key was looked at
            return _invalid()


def _invalid() -> ApiError:
    return ApiError(401, "WORKER_KEY_INVALID", "This key is nobody's.")


def _stands(key: StoredKey) -> Beaten:
    standing = standing_of(key.status, None)  # of who is revoked no key is good
    return Beaten(standing, key.status, key.current_job_id, key.seen_at, key.pools_aside)


def _slots(told: object) -> dict[str, int]:
    """Read a worker's own word for its slots: anything may be in it."""
    known = told if isinstance(told, dict) else {}
    return {pool.queue: slots for pool in ENCODERS if type(slots := known.get(pool.value)) is int and slots > 0}


async def _caller(caller: Annotated[Caller, Depends(_known)]) -> Caller:
    if caller.refusal is not None:
        raise caller.refusal
    return caller


async def _welcome(caller: Annotated[Caller, Depends(_caller)]) -> Caller:
    if caller.is_disabled:
        raise refusal(WorkerStanding.DISABLED)
    return caller


async def insist_on_welcome(request: Request) -> None:
    """Look again at who has waited for long: a person may have shut it out meanwhile."""
    await _welcome(await _caller(await _known(request)))


ByAnyKey = Annotated[Caller, Depends(_known)]  # also by one that is good no more
ByKey = Annotated[Caller, Depends(_caller)]
Welcome = Annotated[Caller, Depends(_welcome)]  # and nobody has disabled it
