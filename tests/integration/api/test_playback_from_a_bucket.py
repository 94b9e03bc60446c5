"""Playback of what lies in a bucket: playlists through us, segments straight from there, nothing to who may not see."""

from pathlib import Path

import httpx

from storage.s3 import S3Store
from storage.s3_place import s3_place
from tests.integration.api.running import serving
from tests.support.s3 import S3Server

BASE = "/videos/film/r1/360p"
OBJECTS = {
    "videos/film/master.m3u8": b"#EXTM3U\n",
    "videos/film/thumbnail.jpg": b"\xff\xd8",
    "videos/film/r1/360p/init.mp4": b"init",
    "videos/film/r1/360p/seg_00000.m4s": b"0123456789" * 1000,
    "videos/other/r1/360p/init.mp4": b"hidden",
}
INSERT = """
    INSERT INTO videos (id, title, slug, published_at)
    VALUES (1, 'Film', 'film', now()), (2, 'Other', 'other', NULL)
"""


async def test_playlists_come_from_us_and_segments_from_the_bucket(
    s3_server: S3Server, database_url: str, tmp_path: Path
) -> None:
    place = s3_place(s3_server.new_url(), s3_server.environment)
    bucket = S3Store(place, tmp_path / "work", link_s=120, patience_s=5)
    for key, data in OBJECTS.items():
        await bucket.put_bytes(key, data)
    origin = {"Origin": "https://elsewhere.example"}
    async with serving(database_url, tmp_path / "storage", store=bucket, admin_secret="s") as api:
        await api.change(INSERT)
        for path in ("master.m3u8", "thumbnail.jpg"):
            answer = await api.http.get(f"/videos/film/{path}", headers={"Range": "bytes=0-1"})
            assert (answer.status_code, answer.content) == (206, OBJECTS[f"videos/film/{path}"][:2])
        assert (await api.http.get("/videos/film/master.m3u8")).headers["cache-control"] == "no-cache"

        sent = await api.http.get(f"{BASE}/seg_00000.m4s", headers=origin)
        assert (sent.status_code, sent.content) == (307, b"")
        assert sent.headers["cache-control"] == "private, max-age=60"
        assert sent.headers["access-control-allow-origin"] == "*"
        assert sent.headers["location"].startswith(s3_server.endpoint)
        async with httpx.AsyncClient(base_url=api.url, follow_redirects=True, trust_env=False) as player:
            whole = await player.get(f"{BASE}/seg_00000.m4s", headers=origin)
            assert (whole.status_code, whole.content) == (200, OBJECTS["videos/film/r1/360p/seg_00000.m4s"])
            assert whole.headers["content-type"] == "video/iso.segment"
            part = await player.get(f"{BASE}/seg_00000.m4s", headers=origin | {"Range": "bytes=3-5"})
            assert (part.status_code, part.content) == (206, b"345")
            assert (await player.get(f"{BASE}/init.mp4")).content == b"init"

        head = await api.http.head(f"{BASE}/seg_00000.m4s")
        assert (head.status_code, head.headers["content-length"]) == (200, "10000")
        known = await api.http.get(f"{BASE}/seg_00000.m4s", headers={"If-None-Match": head.headers["etag"]})
        assert known.status_code == 304
        for path in ("film/r1/360p/seg_00001.m4s", "film/r1/360p/none", "other/r1/360p/init.mp4"):
            missing = await api.http.get(f"/videos/{path}")
            assert missing.status_code == 404 and "location" not in missing.headers
