"""/api/session: the admin secret once, then a cookie that scripts cannot read and other sites cannot use."""

import time
from datetime import UTC, datetime

from fastapi import APIRouter, Request, Response

from api.bodies import small_json
from api.guessing import Guesses
from api.openapi import errors, json_body, like
from api.parts import Here
from api.schemas_session import Session, SignIn
from api.security import admin_secret, cookie_name, is_right, keys_of, refuse_other_sites, session_expiry
from api.signing import Keys

router = APIRouter(prefix="/api/session", tags=["session"], responses=errors(403, 421))

LASTS_S = 7 * 24 * 3600
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
    return _signed_in(request, response, keys_of(request))


@router.get("", summary="Signed in or not")
async def current(request: Request, response: Response, here: Here) -> Session:
    """Say whether the cookie is good, and whether one is needed at all. Half of its time over, it is renewed."""
    response.headers["Cache-Control"] = NO_STORE
    if not admin_secret(here.settings):
        return Session(signed_in=True, secret_required=False)
    expires_at = session_expiry(request)
    if expires_at is None:
        return Session(signed_in=False, secret_required=True)
    if expires_at - time.time() < LASTS_S / 2:
        return _signed_in(request, response, keys_of(request))
    return Session(signed_in=True, secret_required=True, expires_at=_moment(expires_at))


@router.delete("", summary="Sign out")
async def sign_out(request: Request, response: Response, here: Here) -> Session:
    """Take the cookie back. Another secret signs everybody out, everywhere."""
    refuse_other_sites(request)
    _set(request, response, "", 0)
    needed = bool(admin_secret(here.settings))
    return Session(signed_in=not needed, secret_required=needed)


def _signed_in(request: Request, response: Response, keys: Keys) -> Session:
    expires_at = int(time.time()) + LASTS_S
    _set(request, response, keys.sign("session", "admin", expires_at), LASTS_S)
    return Session(signed_in=True, secret_required=True, expires_at=_moment(expires_at))


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
