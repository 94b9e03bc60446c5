"""GET /watch/{slug}: one video and nothing else, for everybody who may see it, also inside other sites' pages."""

import json
import re
from html import escape

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from api.assets import shelves_of
from api.parts import Here, Parts
from api.playback import may_see, object_key
from api.policy import elsewhere, page_headers, scripted
from api.reference import shell
from api.videos import shown
from contracts.layout import MASTER, STORYBOARD
from contracts.states import VideoStatus
from mirror import reads
from mirror.views import VideoView

router = APIRouter(include_in_schema=False)

PAGE, MESSAGE = "watch.html", "message.html"
AGAIN_S = 5  # what cannot be played yet looks again by itself
_PLAIN = "default-src 'none'; style-src 'self'; media-src 'self'; img-src 'self'"


# Before the other: no slug begins so.
@router.api_route("/watch/~{link}/{slug}", methods=["GET", "HEAD"], response_class=HTMLResponse)
async def watch_by_link(link: str, slug: str, request: Request, here: Here) -> HTMLResponse:
    return await _watch(slug, request, here, link)


@router.api_route("/watch/{slug}", methods=["GET", "HEAD"], response_class=HTMLResponse)
async def watch(slug: str, request: Request, here: Here) -> HTMLResponse:
    return await _watch(slug, request, here)


async def _watch(slug: str, request: Request, here: Parts, link: str | None = None) -> HTMLResponse:
    if object_key(slug, MASTER) is None or await may_see(request, here, slug, link) is None:
        return await _nothing(request)
    async with here.database.read() as session:
        view = await reads.video_by_slug(session, slug)
    if view is None:
        return await _nothing(request)
    video = await shown(here, view)
    if video.stream_url is None:
        return await _not_yet(request, view)

    def through(address: str | None) -> str | None:
        """Lead an address through the link, if there is one."""
        return address.replace("/videos/", f"/videos/~{link}/", 1) if address and link else address

    stream, poster = through(video.stream_url), through(video.thumbnail_url)
    shelf = await shelves_of(request).newest()
    if shelf.missing or PAGE not in shelf.pages:  # some browsers play it by themselves
        body = f'<video controls playsinline src="{escape(stream or "")}" poster="{escape(poster or "")}"></video>'
        return _page(shell(video.title, body), _PLAIN)
    key = object_key(slug, STORYBOARD)
    board = key is not None and video.status is VideoStatus.READY and await here.store.stat(key) is not None
    told = {
        "title": video.title,
        "stream": stream,
        "poster": poster,
        "storyboard": through(f"/{key}") if board else None,
        "duration": video.duration,
        "growing": video.status is not VideoStatus.READY,
    }
    words = {"title": escape(video.title), "video": escape(json.dumps(told))}
    return _page(_filled(shelf.page(PAGE), words), scripted(await elsewhere(here.store)))


def _filled(page: str, words: dict[str, str]) -> str:
    """Put words into a page in one go: a title may hold the name of another."""
    return re.sub(r"\{(\w+)\}", lambda found: words[found[1]], page)


def _page(html: str, policy: str, status: int = 200, **headers: str) -> HTMLResponse:
    # Nobody is told the address of a page that may itself be the key.
    ours = page_headers(policy, framed_by="*") | {"Referrer-Policy": "no-referrer"} | headers
    return HTMLResponse(html, status_code=status, headers=ours)


async def _message(request: Request, title: str, words: str, status: int = 200, **headers: str) -> HTMLResponse:
    """Say something where the player would be; it may be a frame in somebody's page."""
    page = (await shelves_of(request).newest()).page(MESSAGE)
    return _page(_filled(page, {"title": escape(title), "words": escape(words)}), _PLAIN, status, **headers)


async def _nothing(request: Request) -> HTMLResponse:
    """Say the same of what is not there, what is hidden, and a link that has ended."""
    words = "The address may be wrong, or what was here is not public any more."
    return await _message(request, "There is nothing to watch here.", words, 404)


async def _not_yet(request: Request, view: VideoView) -> HTMLResponse:
    if view.status is VideoStatus.FAILED:
        return await _message(request, view.title, "This video could not be made.")
    words = "It is being made. It will be here in a moment."
    return await _message(request, view.title, words, Refresh=str(AGAIN_S))
