"""What tus wants of every answer below /api/uploads, errors included; and what a browser asks before it sends."""

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.tus_headers import ALGORITHMS, EXTENSIONS, VERSION

UPLOADS = "/api/uploads"
VIDEO_ID = "Vlog-Video-Id"
_OVERRIDES = frozenset({"PATCH", "DELETE", "HEAD"})
_METHODS = "POST, HEAD, PATCH, DELETE, OPTIONS"
_ASKED = (
    "X-Admin-Secret, Content-Type, Tus-Resumable, Upload-Length, Upload-Offset, Upload-Metadata, Upload-Checksum, "
    "Idempotency-Key, X-HTTP-Method-Override, X-Requested-With, X-Request-ID"
)
_SHOWN = (
    "Location, Retry-After, Tus-Resumable, Tus-Version, Tus-Extension, Tus-Max-Size, Tus-Checksum-Algorithm, "
    f"Upload-Offset, Upload-Length, Upload-Metadata, Upload-Expires, {VIDEO_ID}"
)


class TusProtocol:
    """The version on every answer, the answer to OPTIONS, and methods that a proxy would not let through.

    Where a secret is set, pages of other sites may send uploads: with the secret, for the cookie does not go with
    them. Where none is set nobody from elsewhere may, and is not even told how.
    """

    def __init__(self, app: ASGIApp, *, max_bytes: int, open_to_others: bool) -> None:
        self.app = app
        # An answer of yesterday, an error too, would send a client to the wrong place.
        self._always = {"tus-resumable": VERSION, "cache-control": "no-store"}
        if open_to_others:
            self._always |= {"access-control-allow-origin": "*", "access-control-expose-headers": _SHOWN}
        self._options = {
            "tus-version": VERSION,
            "tus-extension": EXTENSIONS,
            "tus-max-size": str(max_bytes),
            "tus-checksum-algorithm": ",".join(ALGORITHMS),
            "allow": _METHODS,
        }
        if open_to_others:
            self._options |= {
                "access-control-allow-methods": _METHODS,
                "access-control-allow-headers": _ASKED,
                "access-control-max-age": "86400",
            }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not (scope["path"] + "/").startswith(UPLOADS + "/"):
            await self.app(scope, receive, send)
            return

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._always.items():
                    headers[name] = value
            await send(message)

        scope = {**scope, "path": scope["path"].rstrip("/")}  # clients like their endpoint to end in one
        if scope["method"] == "OPTIONS":
            await Response(status_code=204, headers=self._options)(scope, receive, told)
            return
        override = Headers(scope=scope).get("x-http-method-override", "").upper()
        if scope["method"] == "POST" and override in _OVERRIDES:
            scope = {**scope, "method": override}
        await self.app(scope, receive, told)
