"""What players ask for, and what burglars do."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.integration.api.running import Api, serving

SEGMENT = os.urandom(3_000_000)
OBJECTS = {
    "videos/film/master.m3u8": b"#EXTM3U\n",
    "videos/film/manifest.mpd": b"<MPD/>",
    "videos/film/thumbnail.jpg": b"\xff\xd8",
    "videos/film/captions.vtt": b"WEBVTT\n",
    "videos/film/r1/360p/playlist.m3u8": b"#EXTM3U\n",
    "videos/film/r1/360p/init.mp4": b"init",
    "videos/film/r1/360p/seg_00000.m4s": SEGMENT,
    "videos/film/r1/360p.1/empty.vtt": b"",
    "videos/film/.hidden": b"hidden",
    "videos/other/master.m3u8": b"other",
    "uploads/1.mp4": b"the source",
    "secret.txt": b"secret",
}
INSERT = "INSERT INTO videos (id, title, slug) VALUES (1, 'Film', 'film'), (2, 'Other', 'other')"
SEG = "/videos/film/r1/360p/seg_00000.m4s"


def fill(root: Path) -> None:
    for key, data in OBJECTS.items():
        (root / key).parent.mkdir(parents=True, exist_ok=True)
        (root / key).write_bytes(data)


@pytest.fixture
async def player(lonely_api: Api) -> AsyncIterator[Api]:
    fill(lonely_api.root)
    await lonely_api.change(INSERT)
    yield lonely_api


@pytest.mark.parametrize(
    ("path", "kind", "cache"),
    [
        ("master.m3u8", "application/vnd.apple.mpegurl", "no-cache"),
        ("manifest.mpd", "application/dash+xml", "no-cache"),
        ("thumbnail.jpg", "image/jpeg", "no-cache"),
        ("captions.vtt", "text/vtt; charset=utf-8", "no-cache"),
        ("r1/360p/playlist.m3u8", "application/vnd.apple.mpegurl", "no-cache"),
        ("r1/360p/init.mp4", "video/mp4", "public, max-age=31536000, immutable"),
        ("r1/360p/seg_00000.m4s", "video/iso.segment", "public, max-age=31536000, immutable"),
        ("r1/360p.1/empty.vtt", "text/vtt; charset=utf-8", "no-cache"),
    ],
)
async def test_each_object_has_its_type_and_its_caching(player: Api, path: str, kind: str, cache: str) -> None:
    answer = await player.http.get(f"/videos/film/{path}")
    data = OBJECTS[f"videos/film/{path}"]
    assert (answer.status_code, answer.content) == (200, data)
    assert (answer.headers["content-type"], answer.headers["cache-control"]) == (kind, cache)
    assert answer.headers["content-length"] == str(len(data))
    head = await player.http.head(f"/videos/film/{path}")
    assert (head.status_code, head.content) == (200, b"")
    for name in ("content-type", "content-length", "etag", "last-modified", "accept-ranges", "cache-control"):
        assert head.headers[name] == answer.headers[name]


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [
        ("bytes=0-99", 0, 100),
        ("bytes=2999990-", 2999990, 3000000),
        ("bytes=-7", 2999993, 3000000),
        ("bytes=5-9999999", 5, 3000000),
    ],
)
async def test_a_range_gives_exactly_its_bytes(player: Api, asked: str, start: int, end: int) -> None:
    answer = await player.http.get(SEG, headers={"Range": asked})
    assert (answer.status_code, answer.content) == (206, SEGMENT[start:end])
    assert answer.headers["content-range"] == f"bytes {start}-{end - 1}/3000000"
    assert answer.headers["content-length"] == str(end - start)


async def test_a_range_outside_is_416_and_nonsense_sends_the_whole(player: Api) -> None:
    answer = await player.http.get(SEG, headers={"Range": "bytes=3000000-"})
    assert (answer.status_code, answer.headers["content-range"]) == (416, "bytes */3000000")
    assert answer.headers["cache-control"] == "no-store", "a segment lasts, what was wrong with one request does not"
    assert answer.json()["error"] == "RANGE_INVALID"
    for nonsense in ("bytes=9-1", "lines=1-2", "bytes=0-1,5-6"):
        assert (await player.http.get(SEG, headers={"Range": nonsense})).status_code == 200


async def test_validators_spare_what_the_client_has(player: Api) -> None:
    first = await player.http.get("/videos/film/master.m3u8")
    tag, date = first.headers["etag"], first.headers["last-modified"]
    for headers in ({"If-None-Match": tag}, {"If-None-Match": f'"x", W/{tag}'}, {"If-Modified-Since": date}):
        again = await player.http.get("/videos/film/master.m3u8", headers=headers)
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
        assert again.headers["access-control-allow-origin"] == "*"
    ranged = {"Range": "bytes=0-2"}
    assert (await player.http.get("/videos/film/master.m3u8", headers=ranged | {"If-Range": tag})).status_code == 206
    stale = await player.http.get("/videos/film/master.m3u8", headers=ranged | {"If-Range": '"old"'})
    assert (stale.status_code, stale.content) == (200, b"#EXTM3U\n")
    (player.root / "videos/film/master.m3u8").write_bytes(b"#EXTM3U changed\n")
    changed = await player.http.get("/videos/film/master.m3u8", headers={"If-None-Match": tag})
    assert (changed.status_code, changed.content) == (200, b"#EXTM3U changed\n")


@pytest.mark.parametrize("path", ["film/r1/720p/playlist.m3u8", "film/r1/360p/seg_00001.m4s", "nobody/master.m3u8"])
async def test_no_cache_keeps_that_something_is_not_there_yet(player: Api, path: str) -> None:
    for answer in (await player.http.get(f"/videos/{path}"), await player.http.head(f"/videos/{path}")):
        assert (answer.status_code, answer.headers["cache-control"]) == (404, "no-store")


async def test_players_of_any_site_may_read_even_errors(player: Api) -> None:
    origin = {"Origin": "https://player.example"}
    for path, status in (("/videos/film/master.m3u8", 200), ("/videos/film/none.m3u8", 404), ("/videos/nobody/x", 404)):
        answer = await player.http.get(path, headers=origin)
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (status, "*")
        assert "Content-Range" in answer.headers["access-control-expose-headers"]
    asking = origin | {"Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "range"}
    preflight = await player.http.options(SEG, headers=asking)
    assert preflight.status_code == 204
    assert "GET" in preflight.headers["access-control-allow-methods"]
    assert "Range" in preflight.headers["access-control-allow-headers"]
    closed = await player.http.get("/api/videos", headers=origin)
    assert "access-control-allow-origin" not in closed.headers


TRICKS = [
    "/videos/film/../other/master.m3u8",
    "/videos/film/../../secret.txt",
    "/videos/film/%2e%2e/%2e%2e/secret.txt",
    "/videos/film/..%2f..%2fsecret.txt",
    "/videos/film/..%5c..%5csecret.txt",
    "/videos/film/..\\..\\secret.txt",
    "/videos/film/%252e%252e/%252e%252e/secret.txt",
    "/videos/%2e%2e/secret.txt",
    "/videos/../uploads/1.mp4",
    "/videos/%2e%2e/uploads/1.mp4",
    "/videos/..%2fuploads/1.mp4",
    "/videos/film//etc/passwd",
    "/videos/film/%2fetc%2fpasswd",
    "/videos//etc/passwd",
    "/videos/film/master.m3u8%00.jpg",
    "/videos/film/%00",
    "/videos/film/./master.m3u8",
    "/videos/film/r1/../master.m3u8",
    "/videos/film/.hidden",
    "/videos/film/r1",
    "/videos/film/r1/",
    "/videos/film/",
    "/videos/film/file:%2f%2f%2fetc%2fpasswd",
    "/videos/film/C:%5cx",
    "/videos/film/" + "a" * 5000,
    "/videos/film/" + "a/" * 500 + "b",
    "/videos/film/%c0%ae%c0%ae/secret.txt",
    "/videos/film/%ff%fe",
]


async def test_no_trick_leads_out_of_the_folder(player: Api) -> None:
    for target in TRICKS:
        # By hand: a decent client would tidy these up before sending.
        answer = await player.raw(f"GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode("latin-1"))
        status, body = answer.split(b"\r\n")[0], answer.split(b"\r\n\r\n", 1)[1]
        assert status in (b"HTTP/1.1 404 Not Found", b"HTTP/1.1 400 Bad Request"), (target, answer)
        for data in (b"the source", b"hidden", b"root:", b"#EXTM3U"):
            assert data not in body, target
    assert (await player.http.get("/videos/film/master.m3u8")).status_code == 200


async def test_with_a_secret_only_what_is_published_plays(database_url: str, tmp_path: Path) -> None:
    async with serving(database_url, tmp_path / "storage", admin_secret="s") as api:
        fill(api.root)
        await api.change(INSERT)
        await api.change("UPDATE videos SET published_at = now() WHERE slug = 'film'")
        assert (await api.http.get("/videos/film/master.m3u8")).status_code == 200
        hidden = await api.http.get("/videos/other/master.m3u8")
        assert (hidden.status_code, hidden.json()["error"]) == (404, "VIDEO_NOT_FOUND")


async def test_a_deleted_video_and_a_folder_without_a_video_do_not_play(player: Api) -> None:
    await player.change("UPDATE videos SET deleted_at = now() WHERE slug = 'film'")
    assert (await player.http.get("/videos/film/master.m3u8")).status_code == 404
    await player.change("DELETE FROM videos")
    assert (await player.http.get("/videos/other/master.m3u8")).status_code == 404
