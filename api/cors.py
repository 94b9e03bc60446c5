"""Let any site's player read what is published: CORS for playback, errors and preflights included."""

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PLAYBACK = "/videos/"
_ALWAYS = {
    "access-control-allow-origin": "*",
    "access-control-expose-headers": "Accept-Ranges, Content-Length, Content-Range, ETag, Last-Modified",
    "cross-origin-resource-policy": "cross-origin",
    "x-content-type-options": "nosniff",
}
_PREFLIGHT = {
    "access-control-allow-methods": "GET, HEAD, OPTIONS",
    "access-control-allow-headers": "Range, If-Range, If-None-Match, If-Modified-Since, Cache-Control",
    "access-control-max-age": "86400",
    "allow": "GET, HEAD, OPTIONS",
}


class PlaybackCors:
    """Playback carries no cookies and no secrets, so every origin may read it; the API itself is not opened."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(PLAYBACK):
            await self.app(scope, receive, send)
            return

        async def opened(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _ALWAYS.items():
                    headers[name] = value
            await send(message)

        if scope["method"] == "OPTIONS":
            await Response(status_code=204, headers=_PREFLIGHT)(scope, receive, opened)
        else:
            await self.app(scope, receive, opened)
