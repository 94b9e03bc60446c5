"""Which worker speaks: by its key alone. Whatever else a request says about who sends it is not believed."""

from dataclasses import dataclass
from typing import Annotated

import structlog
from fastapi import Depends, Request

from api import worker_keys
from api.errors import ApiError
from api.parts import Parts, parts_of
from contracts.states import WorkerStanding
from mirror import reads_registry, registry

log = structlog.get_logger(__name__)

HEADER = "X-Worker-API-Key"


@dataclass(frozen=True)
class Caller:
    """A worker whose key is good. It may be disabled all the same."""

    worker_id: str


async def _caller(request: Request) -> Caller:
    """Find the worker by its key; any doubt is a 401."""
    here = parts_of(request)
    said = [value.strip(" \t") for value in request.headers.getlist(HEADER)]
    if not said or not said[0]:
        raise ApiError(401, "WORKER_KEY_REQUIRED", f"Send the worker's key in the {HEADER} header.")
    prefix = worker_keys.prefix_of(said[0])
    # Of two keys a proxy may have looked at one and we at the other.
    if prefix is None or len(said) > 1:
        raise _invalid()
    async with here.database.read() as session:
        candidates = await reads_registry.keys_like(session, prefix)
    key = worker_keys.matching(said[0], candidates)
    if key is None:
        log.debug("worker_key_unknown", key_prefix=prefix)
        raise _invalid()
    # Only who has the whole key learns what became of it.
    if key.is_revoked:
        raise refusal(WorkerStanding.REVOKED)
    if key.has_expired:
        raise ApiError(401, "WORKER_KEY_EXPIRED", "This key has expired: the worker needs a new one.")
    await _note_use(here, key.key_id, stale=key.used_long_ago)
    return Caller(key.worker_id)


async def _note_use(here: Parts, key_id: int, *, stale: bool) -> None:
    if stale:
        async with here.database.write() as session:
            await registry.key_used(session, key_id)


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


ByKey = Annotated[Caller, Depends(_caller)]
