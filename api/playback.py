"""GET and HEAD /videos/{slug}/…: what was published, and nothing outside its folder."""

import re
import time
from collections import OrderedDict
from pathlib import PurePosixPath
from typing import Any

import structlog
from fastapi import APIRouter, Request
from fastapi.responses import Response, StreamingResponse

from api.errors import ApiError, database_away, is_database_away, video_not_found
from api.growing import Growing
from api.openapi import errors
from api.parts import Here, Parts
from api.ranges import Unsatisfiable, asked_slice, http_date, not_modified, quoted, still_same
from contracts.layout import INIT, MIME, segment_index, video_prefix
from mirror import reads

log = structlog.get_logger(__name__)
router = APIRouter(tags=["playback"])

# Segments are stored once, create-only, under a name that is never used again.
FOREVER = "public, max-age=31536000, immutable"
ASK_AGAIN = "no-cache"
# The bytes behind a link never change, but the link ends; every one holds for longer than this.
FOR_A_MINUTE = "private, max-age=60"

# A list of what is allowed, so that no trick needs a name: no dot files, no `..`, no empty part, no
# backslash, no NUL, no percent sign left over from double encoding, no name that a file system refuses.
_NAME = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}"
_SLUG = re.compile(_NAME)
_PATH = re.compile(rf"{_NAME}(?:/{_NAME}){{0,4}}")

VISIBLE_S = 5.0
VISIBLE_SLUGS = 1024


class Visibility:
    """Remember for a few seconds which slugs may be seen: a player asks for hundreds of segments a minute."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[float, bool]] = OrderedDict()

    def forget(self, slug: str) -> None:
        """Look again at the next request: the video was deleted or restored here. Other APIs notice in seconds."""
        self._known.pop(slug, None)

    async def allows(self, parts: Parts, slug: str) -> bool:
        known = self._known.get(slug)
        if known and time.monotonic() - known[0] < VISIBLE_S:
            return known[1]
        public = parts.settings.admin_secret is None
        try:
            async with parts.database.read() as session:
                video = await reads.video_by_slug(session, slug)
        except Exception as error:
            if not is_database_away(error):
                raise
            # What plays goes on playing while Postgres is away; what was never shown stays hidden.
            log.warning("playback_without_database", slug=slug)
            if known is None and not public:
                raise database_away() from error
            return known[1] if known else True
        allowed = video is not None and video.deleted_at is None and (public or video.published_at is not None)
        self._known[slug] = (time.monotonic(), allowed)
        self._known.move_to_end(slug)
        while len(self._known) > VISIBLE_SLUGS:
            self._known.popitem(last=False)
        return allowed


def object_key(slug: str, path: str) -> str | None:
    """Name the object behind an address; None for anything that is not a plain name below the slug."""
    if not _SLUG.fullmatch(slug) or not _PATH.fullmatch(path):
        return None
    return video_prefix(slug) + path


def cache_control(path: str) -> str:
    name = PurePosixPath(path).name
    return FOREVER if name == INIT or segment_index(name) is not None else ASK_AGAIN


_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"content": {kind: {} for kind in MIME.values()}, "description": "The whole object"},
    206: {"description": "The range that was asked for"},
    307: {"description": "A segment that lies in a bucket: the address at which it can be read for a while"},
    304: {"description": "The copy at the client's is current"},
    416: {"description": "The range lies outside the object"},
    **errors(404, 422, 503),
}


@router.get("/videos/{slug}/{path:path}", summary="Play", response_class=Response, responses=_ANSWERS)
@router.head("/videos/{slug}/{path:path}", summary="Look", response_class=Response, responses=_ANSWERS)
async def play(slug: str, path: str, request: Request, here: Here) -> Response:
    """Serve one object of one video, e.g. `/videos/my-holiday/master.m3u8`."""
    key = object_key(slug, path)
    visibility: Visibility = request.app.state.visibility
    if key is None or not await visibility.allows(here, slug):
        raise video_not_found(slug) if _SLUG.fullmatch(slug) else not_here()
    facts = await here.store.stat(key)
    if facts is None:
        growing: Growing = request.app.state.growing
        text = await growing.playlist(here, slug, path)
        if text is not None:
            return _growing_answer(text, path, request)
        facts = await here.store.stat(key)  # published a moment ago
    if facts is None:
        raise not_here()

    headers = {
        "Content-Type": MIME.get(PurePosixPath(path).suffix, "application/octet-stream"),
        "Accept-Ranges": "bytes",
        "ETag": quoted(facts.etag),
        "Last-Modified": http_date(facts.modified_at),
        "Cache-Control": cache_control(path),
    }
    asked = request.headers
    if not_modified(asked.get("if-none-match"), asked.get("if-modified-since"), facts.etag, facts.modified_at):
        return Response(status_code=304, headers=headers)

    # Not to HEAD, which the link's signature does not cover; and playlists stay here, so that what they name does, too.
    if request.method == "GET" and headers["Cache-Control"] == FOREVER and (link := await here.store.link(key)):
        return Response(status_code=307, headers={"Location": link, "Cache-Control": FOR_A_MINUTE})

    part = None
    if request.method == "GET" and still_same(asked.get("if-range"), facts.etag, facts.modified_at):
        try:
            part = asked_slice(asked.get("range"), facts.size_bytes)
        except Unsatisfiable as error:
            outside = {**headers, "Content-Range": f"bytes */{facts.size_bytes}"}
            del outside["Content-Type"]
            raise ApiError(416, "RANGE_INVALID", "The range lies outside the file.", headers=outside) from error
    start, length = (part.start, part.length) if part else (0, facts.size_bytes)
    headers["Content-Length"] = str(length)
    if part:
        headers["Content-Range"] = f"bytes {start}-{start + length - 1}/{facts.size_bytes}"
    if request.method == "HEAD":
        return Response(headers=headers)
    chunks = here.store.read(key, start=start, length=length)
    return StreamingResponse(chunks, status_code=206 if part else 200, headers=headers)


def _growing_answer(text: str, path: str, request: Request) -> Response:
    data = text.encode()
    headers = {"Content-Type": MIME[PurePosixPath(path).suffix], "Cache-Control": ASK_AGAIN}
    if request.method == "HEAD":
        return Response(headers=headers | {"Content-Length": str(len(data))})
    return Response(data, headers=headers)


def not_here() -> ApiError:
    return ApiError(404, "NOT_FOUND", "There is nothing at this address.")
