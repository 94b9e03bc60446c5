"""The page's files: only those that are named, under an address that changes with them."""

import gzip
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from api import assets
from api.errors import install

SCRIPT = "console.log('film');\n" * 100


@pytest.fixture
def web(tmp_path: Path) -> Path:
    (tmp_path / "page/player").mkdir(parents=True)
    (tmp_path / "page/index.html").write_text("<head>{preloads}</head><script src='{assets}/page.js'></script>")
    (tmp_path / "page/watch.html").write_text("{preloads}")
    (tmp_path / "page/page.js").write_text('import { a } from "./library.js";\n' + SCRIPT)
    (tmp_path / "page/library.js").write_text('import "./player/player.js"; export { b } from "./lib/htm.js";')
    (tmp_path / "page/player/player.js").write_text('import { c } from "../library.js"; import("../lib/hls.js");')
    (tmp_path / "page/watch.js").write_text('import {\n  c,\n} from "./lib/hooks.js";')
    (tmp_path / "page/notes.txt").write_text("not for the world")
    for path in assets.PACKAGES.values():
        file = tmp_path / "node_modules" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text('import{options as n}from"preact";')
    (tmp_path / "node_modules/preact/package.json").write_text("{}")
    return tmp_path


@pytest.fixture
async def http(web: Path) -> AsyncIterator[httpx.AsyncClient]:
    app = FastAPI()
    app.include_router(assets.router)
    app.state.shelves = assets.Shelves(web)
    install(app)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        yield client


async def test_a_file_is_kept_for_ever_under_its_version_and_asked_for_again_under_another(
    http: httpx.AsyncClient, web: Path
) -> None:
    version = (await assets.Shelves(web).newest()).version
    found = await http.get(f"/assets/{version}/page.js", headers={"Accept-Encoding": "gzip"})
    assert (found.text.endswith(SCRIPT), found.headers["content-encoding"]) == (True, "gzip")
    assert "immutable" in found.headers["cache-control"]
    assert found.headers["content-type"].startswith("text/javascript")
    plain = await http.get("/assets/older/page.js", headers={"Accept-Encoding": "identity"})
    assert (plain.text, plain.headers["cache-control"]) == (found.text, "no-cache")
    assert "content-encoding" not in plain.headers


@pytest.mark.parametrize(
    "path",
    [
        "notes.txt",
        "index.html",
        "../node_modules/preact/package.json",
        "..%2fnode_modules%2fpreact%2fpackage.json",
        "lib/package.json",
        "node_modules/preact/dist/preact.mjs",
        "page.js/",
        "",
    ],
)
async def test_nothing_else_is_given_away(http: httpx.AsyncClient, path: str) -> None:
    assert (await http.get(f"/assets/v/{path}")).status_code == 404


async def test_packages_name_one_another_by_addresses(http: httpx.AsyncClient) -> None:
    assert (await http.get("/assets/v/lib/hooks.js")).text == 'import{options as n}from"./preact.js";'


async def test_the_page_names_its_files_and_changes_its_version_with_them(web: Path) -> None:
    shelves = assets.Shelves(web, look_s=0)
    before = await shelves.newest()
    assert await shelves.newest() is before, "nothing changed: nothing is read"
    html = before.page("index.html")
    assert f"src='/assets/{before.version}/page.js'" in html
    assert f'<link rel="modulepreload" href="/assets/{before.version}/player/player.js">' in html
    assert "{" not in html
    (web / "page/page.js").write_text("changed()")
    os.utime(web / "page/page.js", (1, 1))
    after = await shelves.newest()
    assert after.version != before.version and after.assets["page.js"].data == b"changed()"
    assert gzip.decompress(before.assets["page.js"].packed).decode().endswith(SCRIPT)


async def test_what_a_page_begins_with_is_named_at_once_and_what_is_for_later_is_not(web: Path) -> None:
    shelf = await assets.Shelves(web).newest()

    def named(page: str) -> list[str]:
        return re.findall(rf'modulepreload" href="/assets/{shelf.version}/([^"]+)"', shelf.page(page))

    assert named("index.html") == ["page.js", "library.js", "lib/htm.js", "lib/preact.js", "player/player.js"]
    # The player of the public page is what somebody came for.
    assert named("watch.html") == ["watch.js", "lib/hooks.js", "lib/preact.js", "lib/hls.js"]


async def test_files_are_looked_at_once_in_a_while_however_many_are_asked_for(web: Path) -> None:
    shelves = assets.Shelves(web, look_s=60)
    before = await shelves.newest()
    (web / "page/page.js").write_text("changed()")
    assert await shelves.newest() is before


async def test_what_set_up_has_not_installed_is_told(web: Path) -> None:
    (web / "node_modules/htm/dist/htm.mjs").unlink()
    assert (await assets.Shelves(web).newest()).missing == ("lib/htm.js",)
    assert (await assets.Shelves(web / "nowhere").newest()).missing == tuple(assets.PACKAGES)
