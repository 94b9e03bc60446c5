"""Who may watch: everybody, those who are signed in, those who have a link."""

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.signing import Keys
from tests.integration.api.running import Api, serving
from tests.integration.api.test_playback import INSERT, fill

SECRET = {"X-Admin-Secret": "hush"}
MASTER = "/videos/film/master.m3u8"


@pytest.fixture
async def site(database_url: str, tmp_path: Path) -> AsyncIterator[Api]:
    async with serving(database_url, tmp_path / "storage", admin_secret="hush") as api:
        fill(api.root)
        await api.change(INSERT)
        yield api


async def command(api: Api, what: str, **body: Any) -> httpx.Response:
    [video] = await api.rows("SELECT id FROM videos WHERE slug = 'film'")
    return await api.http.post(f"/api/videos/{video['id']}/{what}", headers=SECRET, json=body or None)


async def test_a_video_is_shown_and_hidden_at_once_and_each_is_told_once(site: Api) -> None:
    assert (await site.http.get(MASTER)).status_code == 404
    for what, status in (("publish", 200), ("unpublish", 404), ("publish", 200)):
        for _ in range(2):
            answer = await command(site, what)
            assert answer.status_code == 200 and (answer.json()["published_at"] is not None) is (status == 200)
            assert (await site.http.get(MASTER)).status_code == status
    told = await site.rows("SELECT event FROM job_events ORDER BY id")
    assert [row["event"] for row in told] == ["video.published", "video.unpublished", "video.published"]
    await site.change("UPDATE videos SET deleted_at = now() WHERE slug = 'film'")
    for what in ("publish", "unpublish", "links"):
        assert (await command(site, what)).json()["error"] == "VIDEO_NOT_FOUND"
        assert (await site.http.post(f"/api/videos/999/{what}", headers=SECRET)).status_code == 404
        assert (await site.http.post(f"/api/videos/1/{what}")).status_code == 401


async def test_who_is_signed_in_sees_what_is_hidden_and_no_shared_cache_keeps_it(site: Api) -> None:
    for path in ("master.m3u8", "r1/360p/seg_00000.m4s"):
        seen = await site.http.get(f"/videos/film/{path}", headers=SECRET)
        assert seen.status_code == 200 and seen.headers["cache-control"].startswith("private, ")
    assert (await site.http.get(MASTER, headers={"X-Admin-Secret": "wrong"})).status_code == 404
    await site.http.post("/api/session", json={"secret": "hush"})
    assert (await site.http.get(MASTER)).status_code == 200
    await command(site, "publish")
    public = await site.http.get("/videos/film/r1/360p/seg_00000.m4s")
    assert public.headers["cache-control"].startswith("public, ")


async def test_a_link_opens_one_video_until_it_ends_and_relative_addresses_keep_it(site: Api) -> None:
    made = await command(site, "links", expires_in_s=60)
    link = made.json()
    assert made.status_code == 200 and link["url"].startswith("/watch/~") and link["url"].endswith("/film")
    stream = link["stream_url"]
    assert stream == link["url"].replace("/watch/", "/videos/") + "/master.m3u8"
    master = await site.http.get(stream)
    assert master.status_code == 200 and master.headers["access-control-allow-origin"] == "*"
    segment = httpx.URL(site.url + stream).join("r1/360p/seg_00000.m4s").path
    part = await site.http.get(segment, headers={"Range": "bytes=0-3"})
    assert part.status_code == 206 and part.headers["cache-control"].startswith("private, ")
    assert (await site.http.head(segment)).status_code == 200
    assert (await site.http.get(MASTER)).status_code == 404

    now, keys = int(time.time()), Keys("hush")
    for note in (
        keys.sign("link", "film", now - 1),
        keys.sign("link", "other", now + 60),
        keys.sign("session", "admin", now + 60),
        Keys("").sign("link", "film", now + 60),
        "x",
        "%2e%2e",
    ):
        answer = await site.http.get(f"/videos/~{note}/film/master.m3u8")
        assert (answer.status_code, answer.json()["error"]) == (404, "VIDEO_NOT_FOUND"), note
    for climbing in ("../other/master.m3u8", "..%2f..%2fsecret.txt"):
        assert (await site.http.get(stream.replace("master.m3u8", climbing))).status_code == 404
    await site.change("UPDATE videos SET deleted_at = now() WHERE slug = 'film'")
    await site.http.delete("/api/videos/0", headers=SECRET)
    site_again = await command(site, "unpublish")  # looks again at once
    assert site_again.status_code == 404 and (await site.http.get(stream)).status_code == 404


@pytest.mark.parametrize("body", [{"expires_in_s": 0}, {"expires_in_s": 10**12}, {"expires_in_s": "x"}, {"x": 1}])
async def test_a_link_of_no_sensible_length_is_refused(site: Api, body: dict[str, Any]) -> None:
    assert (await command(site, "links", **body)).status_code == 422
    week = await command(site, "links")
    assert week.status_code == 200 and week.json()["expires_at"]
