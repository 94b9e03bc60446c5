"""Who may come in: the admin secret or its cookie, and no other website's page on behalf of its visitor."""

import hmac
from typing import Annotated, cast
from urllib.parse import urlsplit

from fastapi import Depends, Header, Request
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from api.cors import PLAYBACK
from api.errors import ApiError, answer
from api.guessing import Guesses
from api.parts import parts_of
from api.signed_in import SignedIn, SignedOut
from api.signing import Keys
from runtime.settings import Settings, is_loopback


async def require_admin(
    request: Request,
    x_admin_secret: Annotated[str | None, Header(description="VLOG_ADMIN_SECRET, when one is set")] = None,
) -> None:
    """Ask for the admin secret."""
    _require(request, x_admin_secret, admin_secret(parts_of(request).settings))


async def require_registrar(
    request: Request,
    x_admin_secret: Annotated[
        str | None, Header(description="VLOG_WORKER_ADMIN_SECRET, else VLOG_ADMIN_SECRET, when one is set")
    ] = None,
) -> None:
    """Ask for the secret that registers workers: what hands out keys to machines need not rule over videos."""
    _require(request, x_admin_secret, registrar_secret(parts_of(request).settings))


def _require(request: Request, x_admin_secret: str | None, secret: str) -> None:
    """Ask for a secret, or for the cookie that stands for the admin's; without a secret, refuse other sites' pages.

    The service without a secret listens on loopback only, yet any website may make its visitor's
    browser post a form to loopback. Browsers say so in `Origin`; curl and our own page pass.
    """
    if not secret:
        refuse_other_sites(request)
        return
    if not x_admin_secret:
        # The cookie stands for the admin secret and for no other.
        if secret == admin_secret(parts_of(request).settings) and session_of(request) is not None:
            refuse_forgery(request)
            return
        raise _secret_required(is_own=secret != admin_secret(parts_of(request).settings))
    guesses: Guesses = request.app.state.guesses
    guesses.refuse_if_many(request)
    # Headers arrive decoded as Latin-1 whatever they are; this gives back the bytes that were sent.
    is_right(request, x_admin_secret.encode("latin-1"), secret)


def _secret_required(*, is_own: bool) -> ApiError:
    sentence = "Sign in, or send the admin secret in the X-Admin-Secret header."
    if is_own:
        sentence = "This has a secret of its own, VLOG_WORKER_ADMIN_SECRET: send it in the X-Admin-Secret header."
    return ApiError(401, "ADMIN_SECRET_REQUIRED", sentence)


def is_right(request: Request, said: bytes, secret: str) -> None:
    """Compare in constant time; a wrong one is counted."""
    if not hmac.compare_digest(said, secret.encode()):
        guesses: Guesses = request.app.state.guesses
        guesses.wrong(request)
        raise ApiError(403, "ADMIN_SECRET_WRONG", "The admin secret is not right.")


def keys_of(request: Request) -> Keys:
    return cast(Keys, request.app.state.keys)


def cookie_name(request: Request) -> str:
    """Name the cookie; over HTTPS so that a browser takes it from this very host only, and never in clear."""
    return "__Host-vlog_session" if request.url.scheme == "https" else "vlog_session"


def session_of(request: Request) -> SignedIn | None:
    """Say who is signed in by cookie; None when nobody is."""
    found = SignedIn.read(request.cookies.get(cookie_name(request), ""), keys_of(request))
    left: SignedOut = request.app.state.signed_out
    return None if found is None or found.id in left else found


def came_by_cookie(request: Request) -> SignedIn | None:
    """Give the session that opened this request; None where the secret itself did, or none is needed."""
    if not admin_secret(parts_of(request).settings) or request.headers.get("x-admin-secret"):
        return None
    if (held := session_of(request)) is None:  # it ended since it was let in
        raise _secret_required(is_own=False)
    return held


def is_admin(request: Request) -> bool:
    """Tell whether who asks may see everything, without refusing anybody."""
    try:
        _require(request, request.headers.get("x-admin-secret"), admin_secret(parts_of(request).settings))
    except ApiError:
        return False
    return True


def refuse_forgery(request: Request) -> None:
    """Ask of a change made by cookie that it comes from our own page.

    The cookie is SameSite=Strict, but a site is more than an origin: any host below the same domain, any port. Browsers
    say where a request comes from in `Sec-Fetch-Site`, and over plain HTTP, where they do not, in `Origin`.
    """
    if request.method in ("GET", "HEAD", "OPTIONS"):
        return
    site = request.headers.get("sec-fetch-site")
    if site == "same-origin" or (site is None and _is_same_origin(request)):
        return
    raise origin_forbidden()


def refuse_other_sites(request: Request) -> None:
    """Refuse what a browser says comes from another origin's page; who says nothing is no browser."""
    if request.headers.get("sec-fetch-site") == "same-origin":
        return  # behind a proxy that changes `Host`, `Origin` and `Host` differ
    if request.headers.get("origin") is not None and not _is_same_origin(request):
        raise origin_forbidden()


def _is_same_origin(request: Request) -> bool:
    try:
        return urlsplit(request.headers.get("origin", "")).netloc == request.headers.get("host")
    except ValueError:  # brackets that do not close
        return False


def origin_forbidden() -> ApiError:
    return ApiError(403, "ORIGIN_FORBIDDEN", "Pages of other sites may do nothing here.")


AdminOnly = Depends(require_admin)
RegistrarOnly = Depends(require_registrar)


class KnownHost:
    """Without a secret, answer only to names of this machine.

    A website can let its own name point to 127.0.0.1 (DNS rebinding): to the browser our answers are then its own,
    and `Origin` and `Host` agree. Only the name in `Host` gives it away. Playback is open to every site anyway.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self._own = settings.host.strip("[]").lower()
        self._everybody = bool(admin_secret(settings))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._everybody or scope["path"].startswith(PLAYBACK):
            await self.app(scope, receive, send)
            return
        hosts = Headers(scope=scope).getlist("host")
        if hosts and all(self._is_ours(host) for host in hosts):
            await self.app(scope, receive, send)
            return
        sentence = "Ask for localhost or 127.0.0.1; other names are answered once VLOG_ADMIN_SECRET is set."
        await answer(ApiError(421, "HOST_UNKNOWN", sentence))(scope, receive, send)

    def _is_ours(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:  # brackets that do not close, and the like
            return False
        return is_loopback(name) or name == self._own


def admin_secret(settings: Settings) -> str:
    return settings.admin_secret.get_secret_value() if settings.admin_secret else ""


def registrar_secret(settings: Settings) -> str:
    own = settings.worker_admin_secret
    return own.get_secret_value() if own else admin_secret(settings)
