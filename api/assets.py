"""GET /assets/{version}/…: the page's own modules, and those files of npm packages that it names.

The version is that of the contents, so that a browser may keep for ever what it got, and asks for the new ones as soon
as there are new ones.
"""

import asyncio
import gzip
import hashlib
import posixpath
import re
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import Response

from api.errors import ApiError

router = APIRouter(include_in_schema=False)

WEB = Path(__file__).parents[1] / "web"
KINDS = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
# Nothing else of what npm installed is served.
PACKAGES = {
    "lib/preact.js": "preact/dist/preact.mjs",
    "lib/hooks.js": "preact/hooks/dist/hooks.mjs",
    "lib/htm.js": "htm/dist/htm.mjs",
    "lib/hls.js": "hls.js/dist/hls.min.mjs",
    "lib/tus.js": "tus-js-client/dist/tus.min.js",
}
# The module that each page starts with, and what it asks for at once without importing it by name.
ENTRIES = {"index.html": ("page.js",), "watch.html": ("watch.js", "lib/hls.js")}
FOREVER = "public, max-age=31536000, immutable"
SMALL = 1000  # bytes, below which packing gains nothing
LOOK_S = 1.0  # a page is sixty files: looking for changes at each of them would be most of the work

_BARE = re.compile(rb'from\s*"preact"')
_IMPORT = re.compile(rb'\b(?:from|import)\s*"(\.[^"]+)"')  # not `import(…)`: that is for later


@dataclass(frozen=True)
class Asset:
    data: bytes
    packed: bytes  # the same with gzip; empty where that gains nothing
    kind: str


@dataclass(frozen=True)
class Shelf:
    """Every file of the page, as it was read."""

    version: str
    assets: dict[str, Asset]
    pages: dict[str, str]  # the HTML around them
    missing: tuple[str, ...]  # packages that set-up has not installed

    def page(self, name: str) -> str:
        """Give a page with the addresses of its files filled in."""
        return self._filled[name]

    @cached_property
    def _filled(self) -> dict[str, str]:
        return {name: self._fill(name, text) for name, text in self.pages.items()}

    def _fill(self, name: str, text: str) -> str:
        here = f"/assets/{self.version}"
        modules = self._modules(ENTRIES.get(name, ()))
        preloads = "\n  ".join(f'<link rel="modulepreload" href="{here}/{path}">' for path in modules)
        return text.replace("{assets}", here).replace("{preloads}", preloads)

    def _modules(self, entries: tuple[str, ...]) -> list[str]:
        """Name what is needed before anything of a page runs: all of it is fetched at once, not import by import."""
        found: dict[str, None] = {}  # in the order they are met
        waiting = list(reversed(entries))
        while waiting:
            path = waiting.pop()
            if path in found or path not in self.assets:
                continue
            found[path] = None
            names = (name.decode() for name in _IMPORT.findall(self.assets[path].data))
            waiting += [posixpath.normpath(posixpath.join(posixpath.dirname(path), name)) for name in names]
        return list(found)


class Shelves:
    """The newest shelf: read anew when a file has changed, which in production none does."""

    def __init__(self, web: Path | None = None, *, look_s: float = LOOK_S) -> None:
        self._given, self._look_s = web, look_s
        self._looked_at = float("-inf")
        self._stamp: tuple[object, ...] | None = None
        self._shelf = Shelf("none", {}, {}, tuple(PACKAGES))

    async def newest(self) -> Shelf:
        if time.monotonic() - self._looked_at < self._look_s:
            return self._shelf
        return await asyncio.to_thread(self._newest)

    def _newest(self) -> Shelf:
        web = self._given or WEB
        own = sorted(path for path in (web / "page").rglob("*") if path.suffix in {*KINDS, ".html"})
        files = {path.relative_to(web / "page").as_posix(): path for path in own}
        packages = {name: web / "node_modules" / path for name, path in PACKAGES.items()}
        files |= {name: path for name, path in packages.items() if path.is_file()}
        stamp = tuple((name, (stat := path.stat()).st_mtime_ns, stat.st_size) for name, path in files.items())
        if stamp != self._stamp:
            self._shelf = _read(files, tuple(name for name in packages if name not in files))
            self._stamp = stamp
        self._looked_at = time.monotonic()
        return self._shelf


def _read(files: dict[str, Path], missing: tuple[str, ...]) -> Shelf:
    digest = hashlib.sha256()
    assets: dict[str, Asset] = {}
    pages: dict[str, str] = {}
    for name, path in files.items():
        data = path.read_bytes()
        digest.update(f"{name}\0{len(data)}\0".encode() + data)
        if path.suffix == ".html":
            pages[name] = data.decode()
            continue
        # Browsers know no package names, and a map of them would be a script inside the page.
        data = _BARE.sub(b'from"./preact.js"', data) if name in PACKAGES else data
        packed = gzip.compress(data, 6, mtime=0) if len(data) > SMALL else b""
        assets[name] = Asset(data, packed, KINDS[Path(name).suffix])
    return Shelf(digest.hexdigest()[:16], assets, pages, missing)


def shelves_of(request: Request) -> Shelves:
    shelves: Shelves = request.app.state.shelves
    return shelves


@router.get("/assets/{version}/{path:path}")
async def asset(version: str, path: str, request: Request) -> Response:
    shelf = await shelves_of(request).newest()
    found = shelf.assets.get(path)
    if found is None:
        raise ApiError(404, "NOT_FOUND", "There is nothing at this address.")
    headers = {
        "Content-Type": found.kind,
        "X-Content-Type-Options": "nosniff",
        # What an older page asks for may be newer than it; it must not be kept under the old name.
        "Cache-Control": FOREVER if version == shelf.version else "no-cache",
        "Vary": "Accept-Encoding",
    }
    packed = found.packed and "gzip" in request.headers.get("accept-encoding", "")
    if packed:
        headers["Content-Encoding"] = "gzip"
    return Response(found.packed if packed else found.data, headers=headers)
