"""/api/session: the admin secret once, then a cookie that scripts cannot read and other sites cannot use."""

import asyncio
import time
from datetime import UTC, datetime

import structlog
from fastapi import APIRouter, Request, Response

from api.bodies import small_json
from api.guessing import Guesses
from api.live import Live
from api.openapi import errors, json_body, like
from api.parts import Here, Parts
from api.schemas_session import Session, SignIn
from api.security import admin_secret, cookie_name, is_right, keys_of, refuse_other_sites, session_of
from api.signed_in import LASTS_S, SignedIn
from mirror.events import TOPIC_SIGNED_OUT, notify

log = structlog.get_logger(__name__)
router = APIRouter(prefix="/api/session", tags=["session"], responses=errors(403, 421))

TELL_S = 2.0  # who leaves does not wait for a Postgres that is away
NO_STORE = "no-store"


@router.post(
    "",
    summary="Sign in",
    openapi_extra=json_body(SignIn),
    responses=errors(408, 422, 429) | like(413, "Too large", "REQUEST_TOO_LARGE", "This takes at most 65536 bytes …"),
)
async def sign_in(request: Request, response: Response, here: Here) -> Session:
    """Take the admin secret and set a cookie that stands for it, for a week. Where no secret is set, none is needed."""
    refuse_other_sites(request)  # else a page could sign its visitor in to a service of its own
    secret = admin_secret(here.settings)
    if not secret:
        return Session(signed_in=True, secret_required=False)
    guesses: Guesses = request.app.state.guesses
    guesses.refuse_if_many(request)
    asked = await small_json(request, SignIn)
    is_right(request, asked.secret.get_secret_value().encode("utf-8", "surrogatepass"), secret)
    return _signed_in(request, response, SignedIn.anew())


@router.get("", summary="Signed in or not")
async def current(request: Request, response: Response, here: Here) -> Session:
    """Say whether the cookie is good, and whether one is needed at all. Half of its time over, it is renewed."""
    response.headers["Cache-Control"] = NO_STORE
    if not admin_secret(here.settings):
        return Session(signed_in=True, secret_required=False)
    held = session_of(request)
    if held is None:
        return Session(signed_in=False, secret_required=True)
    if held.expires_at - time.time() < LASTS_S / 2:
        return _signed_in(request, response, SignedIn.anew(held.id))
    return Session(signed_in=True, secret_required=True, expires_at=_moment(held.expires_at))


@router.delete("", summary="Sign out")
async def sign_out(request: Request, response: Response, here: Here) -> Session:
    """Take the cookie back, and end the streams that it opened. Another secret signs everybody out, everywhere."""
    refuse_other_sites(request)
    held = session_of(request)
    if held is not None:
        await _leave(request, here, held.id)
    _set(request, response, "", 0)
    needed = bool(admin_secret(here.settings))
    return Session(signed_in=not needed, secret_required=needed)


async def _leave(request: Request, here: Parts, session_id: str) -> None:
    """End what this session has open: here at once, in other processes as soon as they hear of it."""
    live: Live = request.app.state.live
    live.sign_out(session_id)
    try:
        async with asyncio.timeout(TELL_S), here.database.write() as session:
            await notify(session, TOPIC_SIGNED_OUT, session_id)
    except Exception as error:  # its cookie is taken back all the same
        log.warning("sign_out_not_told", error=str(error).partition("\n")[0] or type(error).__name__)


def _signed_in(request: Request, response: Response, now: SignedIn) -> Session:
    _set(request, response, now.cookie(keys_of(request)), LASTS_S)
    return Session(signed_in=True, secret_required=True, expires_at=_moment(now.expires_at))


def _set(request: Request, response: Response, value: str, lasts_s: int) -> None:
    response.set_cookie(
        cookie_name(request),
        value,
        max_age=lasts_s,
        path="/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    response.headers["Cache-Control"] = NO_STORE


def _moment(timestamp: int) -> datetime:
    return datetime.fromtimestamp(timestamp, UTC)
