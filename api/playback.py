"""GET and HEAD /videos/{slug}/…: what was published, and nothing outside its folder."""

import re
import time
from collections import OrderedDict
from enum import Enum, auto
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
from api.security import is_admin, keys_of
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


class Sight(Enum):
    PUBLIC = auto()
    HIDDEN = auto()  # but for those who are signed in or have a link
    GONE = auto()


class Visibility:
    """Remember for a few seconds which slugs may be seen: a player asks for hundreds of segments a minute."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[float, Sight]] = OrderedDict()

    def forget(self, slug: str) -> None:
        """Look again at the next request: the video was hidden or shown here. Other APIs notice in seconds."""
        self._known.pop(slug, None)

    async def of(self, parts: Parts, slug: str) -> Sight:
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
            return known[1] if known else Sight.PUBLIC
        if video is None or video.deleted_at is not None:
            sight = Sight.GONE
        else:
            sight = Sight.PUBLIC if public or video.published_at is not None else Sight.HIDDEN
        self._known[slug] = (time.monotonic(), sight)
        self._known.move_to_end(slug)
        while len(self._known) > VISIBLE_SLUGS:
            self._known.popitem(last=False)
        return sight


async def may_see(request: Request, here: Parts, slug: str, link: str | None = None) -> Sight | None:
    """Say how who asks may see a video: as all do, or as one who is signed in or has a link; None: not at all."""
    if link is not None and keys_of(request).expiry("link", slug, link, time.time()) is None:
        return None
    visibility: Visibility = request.app.state.visibility
    sight = await visibility.of(here, slug)
    if sight is Sight.GONE or (sight is Sight.HIDDEN and link is None and not is_admin(request)):
        return None
    return sight if link is None else Sight.HIDDEN  # what is behind a link is not for caches that people share


def object_key(slug: str, path: str) -> str | None:
    """Name the object behind an address; None for anything that is not a plain name below the slug."""
    if not _SLUG.fullmatch(slug) or not _PATH.fullmatch(path):
        return None
    return video_prefix(slug) + path


def lasts(path: str) -> bool:
    name = PurePosixPath(path).name
    return name == INIT or segment_index(name) is not None


def cache_control(path: str, sight: Sight = Sight.PUBLIC) -> str:
    if sight is Sight.PUBLIC:
        return FOREVER if lasts(path) else ASK_AGAIN
    return FOR_A_MINUTE if lasts(path) else f"private, {ASK_AGAIN}"


_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"content": {kind: {} for kind in MIME.values()}, "description": "The whole object"},
    206: {"description": "The range that was asked for"},
    307: {"description": "A segment that lies in a bucket: the address at which it can be read for a while"},
    304: {"description": "The copy at the client's is current"},
    416: {"description": "The range lies outside the object"},
    **errors(404, 422, 503),
}


# Before the other: no slug begins so.
@router.get("/videos/~{link}/{slug}/{path:path}", summary="Play by a link", response_class=Response, responses=_ANSWERS)
@router.head(
    "/videos/~{link}/{slug}/{path:path}", summary="Look by a link", response_class=Response, responses=_ANSWERS
)
async def play_by_link(link: str, slug: str, path: str, request: Request, here: Here) -> Response:
    """Serve the same to who has a link (`POST /api/videos/{id}/links`); relative addresses in playlists keep it."""
    return await _serve(slug, path, request, here, link)


@router.get("/videos/{slug}/{path:path}", summary="Play", response_class=Response, responses=_ANSWERS)
@router.head("/videos/{slug}/{path:path}", summary="Look", response_class=Response, responses=_ANSWERS)
async def play(slug: str, path: str, request: Request, here: Here) -> Response:
    """Serve one object of one video, e.g. `/videos/my-holiday/master.m3u8`; unpublished ones to who is signed in."""
    return await _serve(slug, path, request, here)


async def _serve(slug: str, path: str, request: Request, here: Parts, link: str | None = None) -> Response:
    key = object_key(slug, path)
    sight = await may_see(request, here, slug, link) if key is not None else None
    if key is None or sight is None:
        raise video_not_found(slug) if _SLUG.fullmatch(slug) else not_here()
    facts = await here.store.stat(key)
    if facts is None:
        growing: Growing = request.app.state.growing
        text = await growing.playlist(here, slug, path)
        if text is not None:
            return _growing_answer(text, path, request, sight)
        facts = await here.store.stat(key)  # published a moment ago
    if facts is None:
        raise not_here()

    headers = {
        "Content-Type": MIME.get(PurePosixPath(path).suffix, "application/octet-stream"),
        "Accept-Ranges": "bytes",
        "ETag": quoted(facts.etag),
        "Last-Modified": http_date(facts.modified_at),
        "Cache-Control": cache_control(path, sight),
    }
    asked = request.headers
    if not_modified(asked.get("if-none-match"), asked.get("if-modified-since"), facts.etag, facts.modified_at):
        return Response(status_code=304, headers=headers)

    # Not to HEAD, which the link's signature does not cover; and playlists stay here, so that what they name does, too.
    if request.method == "GET" and lasts(path) and (address := await here.store.link(key)):
        return Response(status_code=307, headers={"Location": address, "Cache-Control": FOR_A_MINUTE})

    part = None
    if request.method == "GET" and still_same(asked.get("if-range"), facts.etag, facts.modified_at):
        try:
            part = asked_slice(asked.get("range"), facts.size_bytes)
        except Unsatisfiable as error:
            outside = {**headers, "Content-Range": f"bytes */{facts.size_bytes}"}
            del outside["Content-Type"], outside["Cache-Control"]  # those of the file
            raise ApiError(416, "RANGE_INVALID", "The range lies outside the file.", headers=outside) from error
    start, length = (part.start, part.length) if part else (0, facts.size_bytes)
    headers["Content-Length"] = str(length)
    if part:
        headers["Content-Range"] = f"bytes {start}-{start + length - 1}/{facts.size_bytes}"
    if request.method == "HEAD":
        return Response(headers=headers)
    chunks = here.store.read(key, start=start, length=length)
    return StreamingResponse(chunks, status_code=206 if part else 200, headers=headers)


def _growing_answer(text: str, path: str, request: Request, sight: Sight) -> Response:
    data = text.encode()
    headers = {"Content-Type": MIME[PurePosixPath(path).suffix], "Cache-Control": cache_control(path, sight)}
    if request.method == "HEAD":
        return Response(headers=headers | {"Content-Length": str(len(data))})
    return Response(data, headers=headers)


def not_here() -> ApiError:
    return ApiError(404, "NOT_FOUND", "There is nothing at this address.")
