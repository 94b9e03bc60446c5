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


async def test_the_public_page_goes_into_other_pages_and_shows_only_what_may_be_seen(site: Api) -> None:
    hidden = await site.http.get("/watch/film")
    assert hidden.status_code == 404 and "nothing to watch" in hidden.text and "Film" not in hidden.text
    await command(site, "publish")
    waits = await site.http.get("/watch/film")
    assert (waits.status_code, waits.headers["refresh"]) == (200, "5") and "It is being made." in waits.text
    assert "frame-ancestors *" in waits.headers["content-security-policy"] and "/page.css" in waits.text
    title = '"><script>alert(1)</script>{video}'
    await site.change(
        "UPDATE videos SET status = 'ready', playable_at = now(), title = :title WHERE slug = 'film'", title=title
    )
    page = await site.http.get("/watch/film")
    policy = page.headers["content-security-policy"]
    assert page.status_code == 200 and "frame-ancestors *" in policy and "unsafe" not in policy
    assert "x-frame-options" not in page.headers and page.headers["referrer-policy"] == "no-referrer"
    assert "alert(1)</script>" not in page.text and "/videos/film/master.m3u8" in page.text
    assert (await site.http.head("/watch/film")).status_code == 200
    # The page of the site itself goes nowhere.
    assert "frame-ancestors 'none'" in (await site.http.get("/")).headers["content-security-policy"]

    await command(site, "unpublish")
    link = (await command(site, "links", expires_in_s=60)).json()
    by_link = await site.http.get(link["url"])
    assert by_link.status_code == 200 and link["stream_url"] in by_link.text
    assert "/videos/film/" not in by_link.text  # nothing leads past the link
    for gone in ("/watch/film", link["url"].replace("/film", "/other"), "/watch/~x/film", "/watch/no", "/watch/%2e%2e"):
        assert (await site.http.get(gone)).status_code == 404, gone
