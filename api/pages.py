"""GET / and GET /docs: the page, and the API's description. Nothing of them comes from anybody else's server."""

import re
from html import escape

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from api.assets import Shelf, shelves_of
from api.parts import Here, Parts
from api.policy import elsewhere, page_headers, scripted
from api.reference import STYLE, reference, shell
from api.schemas_session import Session
from api.security import admin_secret, session_of

router = APIRouter(include_in_schema=False)

SIGN_OUT = '<span class="button small quiet">Sign out</span>'

# Nothing on the plain pages runs, and nothing but their stylesheet is fetched.
_HEADERS = page_headers("default-src 'none'; style-src 'self'")


@router.get("/", response_class=HTMLResponse)
async def home(request: Request, here: Here) -> HTMLResponse:
    shelf = await shelves_of(request).newest()
    if shelf.missing:
        return packages_missing(request, here)
    headers = page_headers(scripted(await elsewhere(here.store)))
    return HTMLResponse(_filled(shelf, request, locked=bool(admin_secret(here.settings))), headers=headers)


def _filled(shelf: Shelf, request: Request, *, locked: bool) -> str:
    """Give the page as this visitor will see it: with something to look at, and without asking who they are."""
    session = Session(signed_in=not locked or session_of(request) is not None, secret_required=locked)
    shell = shelf.page("shell.html" if session.signed_in else "door.html")
    words = {
        "session": escape(session.model_dump_json(include={"signed_in", "secret_required"})),
        "shell": shell.replace("{sign_out}", SIGN_OUT if locked else ""),
    }
    return re.sub(r"\{(session|shell)\}", lambda found: words[found[1]], shelf.page("index.html"))


def packages_missing(request: Request, here: Parts) -> HTMLResponse:
    """Say what to do where set-up has not installed what the page is made with."""
    url = str(request.base_url)
    locked = bool(admin_secret(here.settings))
    secret = ' -H "X-Admin-Secret: $VLOG_ADMIN_SECRET"' if locked else ""
    links = {"docs": "the API, route by route", "openapi.json": "the same for programs", "api/health": "is it well?"}
    items = "".join(f'<li><a href="/{path}">/{path}</a> {about}' for path, about in links.items())
    if here.temporal_ui_url and not locked:  # an address on this machine: of use to those who sit at it
        items += f'<li><a href="{escape(here.temporal_ui_url)}">Temporal</a> every video as a workflow'
    upload = f"curl{secret} -T my.mp4 '{url}api/videos?filename=my.mp4'"
    follow = f"curl{secret} {url}api/videos/1/progress"
    body = (
        "<h1>VLog</h1><p>Self-hosted, durable video transcoding.</p>"
        "<p>The page needs a few packages that are not installed: run <code>make setup</code> in the checkout and load"
        " this again. All else works.</p>"
        f"<ul>{items}</ul><h2>Upload</h2><pre>{escape(upload)}</pre>"
        f"<h2>Follow</h2><pre>{escape(follow)}</pre>"
        "<p>When its status is <code>ready</code>, <code>stream_url</code> of <code>/api/videos/1</code> plays.</p>"
    )
    return HTMLResponse(shell("VLog", body), headers=_HEADERS)


@router.get("/docs", response_class=HTMLResponse)
async def docs(request: Request) -> HTMLResponse:
    return HTMLResponse(reference(request.app.openapi()), headers=_HEADERS)


@router.get("/docs.css")
async def style() -> Response:
    return Response(STYLE, media_type="text/css", headers={"Cache-Control": "no-cache"})
