"""Who may come in: the admin secret, and no other website's page on behalf of its visitor."""

import hmac
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Header, Request
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from api.cors import PLAYBACK
from api.errors import ApiError, answer
from api.parts import parts_of
from runtime.settings import Settings, is_loopback


def require_admin(
    request: Request,
    x_admin_secret: Annotated[str | None, Header(description="VLOG_ADMIN_SECRET, when one is set")] = None,
) -> None:
    """Ask for the admin secret."""
    _require(request, x_admin_secret, admin_secret(parts_of(request).settings))


def require_registrar(
    request: Request,
    x_admin_secret: Annotated[
        str | None, Header(description="VLOG_WORKER_ADMIN_SECRET, else VLOG_ADMIN_SECRET, when one is set")
    ] = None,
) -> None:
    """Ask for the secret that registers workers: what hands out keys to machines need not rule over videos."""
    _require(request, x_admin_secret, registrar_secret(parts_of(request).settings))


def _require(request: Request, x_admin_secret: str | None, secret: str) -> None:
    """Ask for a secret; without a secret, refuse pages of other origins.

    The service without a secret listens on loopback only, yet any website may make its visitor's
    browser post a form to loopback. Browsers say so in `Origin`; curl and our own page pass.
    """
    if not secret:
        origin = request.headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
            raise ApiError(403, "ORIGIN_FORBIDDEN", "Pages of other sites may do nothing here.")
        return
    if not x_admin_secret:
        raise ApiError(401, "ADMIN_SECRET_REQUIRED", "Send the admin secret in the X-Admin-Secret header.")
    # Headers arrive decoded as Latin-1 whatever they are; this gives back the bytes that were sent.
    if not hmac.compare_digest(x_admin_secret.encode("latin-1"), secret.encode()):
        raise ApiError(403, "ADMIN_SECRET_WRONG", "The admin secret is not right.")


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
