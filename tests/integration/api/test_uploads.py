"""The way in: bytes, then rows, then a workflow; or a refusal that leaves nothing behind."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from tests.integration.api.running import Api, serving
from tests.support.eventually import eventually

VIDEO = b"\x00\x00\x00\x18ftypisom" + os.urandom(300_000)


async def pieces(data: bytes, size: int = 50_000) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


async def test_a_raw_upload_becomes_a_file_a_video_a_job_and_an_event(lonely_api: Api) -> None:
    api = lonely_api
    answer = await api.http.put(
        "/api/videos",
        params={"filename": "My Holiday.MP4", "owner": "ana", "tier": "creator", "qualities": "720p,360p"},
        content=pieces(VIDEO),
    )
    assert answer.status_code == 201, answer.text
    created = answer.json()
    assert created.keys() == {"video_id", "slug", "job_id", "status"}
    assert (created["slug"], created["status"]) == ("my-holiday", "pending")
    assert answer.headers["location"] == f"/api/videos/{created['video_id']}"
    assert api.files() == {f"uploads/{created['video_id']}.mp4": VIDEO}
    [video] = await api.rows("SELECT * FROM videos")
    assert (video["title"], video["owner"], video["tier"]) == ("My Holiday", "ana", "creator")
    assert (video["source_filename"], video["source_size_bytes"]) == ("My Holiday.MP4", len(VIDEO))
    [job] = await api.rows("SELECT * FROM transcoding_jobs")
    assert (job["id"], job["qualities"]) == (created["job_id"], ["720p", "360p"])
    [event] = await api.rows("SELECT * FROM job_events")
    assert event["event"] == "job.created"


@pytest.mark.parametrize("fields_first", [True, False])
async def test_a_form_is_the_same_way_in_whatever_its_order(lonely_api: Api, fields_first: bool) -> None:
    parts: list[tuple[str, tuple[str | None, str | bytes]]] = [
        ("title", (None, "Grüße")),
        ("description", (None, "two\nlines")),
        ("unknown", (None, "x")),
        ("file", ("clip.mov", VIDEO)),
    ]
    answer = await lonely_api.http.post("/api/videos", files=parts if fields_first else parts[::-1])
    assert answer.status_code == 201, answer.text
    assert lonely_api.files() == {f"uploads/{answer.json()['video_id']}.mov": VIDEO}
    [video] = await lonely_api.rows("SELECT title, description, slug FROM videos")
    assert dict(video) == {"title": "Grüße", "description": "two\nlines", "slug": "grue"}


async def refused(api: Api, answer: httpx.Response, status: int, code: str) -> None:
    assert (answer.status_code, answer.json()["error"]) == (status, code), answer.text
    assert answer.json().keys() == {"error", "detail"}
    assert api.files() == {}
    assert await api.rows("SELECT id FROM videos") == []
    assert (await api.http.get("/health")).status_code == 200


async def test_an_empty_file_is_refused_and_leaves_nothing(lonely_api: Api) -> None:
    await refused(lonely_api, await lonely_api.http.put("/api/videos", content=b""), 400, "SOURCE_EMPTY")
    form = {"file": ("a.mp4", b"")}
    await refused(lonely_api, await lonely_api.http.post("/api/videos", files=form), 400, "SOURCE_EMPTY")


@pytest.mark.parametrize(("title", "code"), [("t" * 10_000, "TITLE_TOO_LONG"), ("bell\x07", "TITLE_INVALID")])
async def test_a_bad_title_is_refused_before_or_after_the_file(lonely_api: Api, title: str, code: str) -> None:
    api = lonely_api
    await refused(api, await api.http.put("/api/videos", params={"title": title}, content=VIDEO), 400, code)
    text, file = ("title", (None, title)), ("file", ("a.mp4", VIDEO))
    await refused(api, await api.http.post("/api/videos", files=[text, file]), 400, code)
    await refused(api, await api.http.post("/api/videos", files=[file, text]), 400, code)


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("tier", "gold", "TIER_INVALID"),
        ("qualities", "9p", "QUALITIES_INVALID"),
        ("owner", "a\x00b", "OWNER_INVALID"),
        ("description", "a\x1b", "DESCRIPTION_INVALID"),
    ],
)
async def test_a_bad_field_is_refused(lonely_api: Api, field: str, value: str, code: str) -> None:
    await refused(lonely_api, await lonely_api.http.put("/api/videos", params={field: value}, content=b"x"), 400, code)


async def test_a_climbing_file_name_climbs_nowhere(lonely_api: Api, tmp_path: Path) -> None:
    before = {p for p in tmp_path.rglob("*") if lonely_api.root not in p.parents}
    ids = []
    for name in ("../../../../etc/passwd.mp4", "/etc/cron.d/x", "..\\..\\x.mkv", "a\x00b.mp4", "..", "x.mp4/"):
        answer = await lonely_api.http.put("/api/videos", params={"filename": name}, content=VIDEO)
        assert answer.status_code == 201, answer.text
        ids.append(answer.json()["video_id"])
    form = {"file": ("../../../../etc/passwd.mp4", VIDEO)}
    answer = await lonely_api.http.post("/api/videos", files=form)
    assert answer.status_code == 201
    names = [f"uploads/{ids[0]}.mp4", f"uploads/{ids[1]}", f"uploads/{ids[2]}.mkv", f"uploads/{ids[3]}.mp4"]
    assert sorted(lonely_api.files()) == sorted(
        [*names, f"uploads/{ids[4]}", f"uploads/{ids[5]}", f"uploads/{answer.json()['video_id']}.mp4"]
    )
    assert {p for p in tmp_path.rglob("*") if lonely_api.root not in p.parents} == before


async def test_what_is_too_large_is_refused_by_its_length_or_while_it_arrives(
    database_url: str, tmp_path: Path
) -> None:
    async with serving(database_url, tmp_path / "storage", max_upload_size=100_000) as api:
        await refused(api, await api.http.put("/api/videos", content=VIDEO), 413, "UPLOAD_TOO_LARGE")
        await refused(api, await api.http.put("/api/videos", content=pieces(VIDEO)), 413, "UPLOAD_TOO_LARGE")
        form = {"file": ("a.mp4", VIDEO)}
        await refused(api, await api.http.post("/api/videos", files=form), 413, "UPLOAD_TOO_LARGE")
        await refused(api, await api.http.put("/api/videos", content=os.urandom(8 << 20)), 413, "UPLOAD_TOO_LARGE")
        assert (await api.http.put("/api/videos", content=VIDEO[:100_000])).status_code == 201


async def test_a_client_that_waits_for_a_go_ahead_is_refused_before_it_sends(database_url: str, tmp_path: Path) -> None:
    async with serving(database_url, tmp_path / "storage", max_upload_size=1000) as api:
        head = (
            b"PUT /api/videos HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999\r\nExpect: 100-continue\r\n\r\n"
        )
        answer = await api.raw(head)
        assert answer.startswith(b"HTTP/1.1 413") and b"connection: close" in answer


async def test_an_upload_that_breaks_off_leaves_nothing(lonely_api: Api) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", lonely_api.port)
    writer.write(
        b"PUT /api/videos HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999999\r\n\r\n" + os.urandom(3 << 20)
    )
    await writer.drain()

    async def arrives() -> bool:
        return any(name.startswith("uploads/") for name in lonely_api.files())

    async def is_gone() -> bool:
        return lonely_api.files() == {}

    await eventually(arrives, within=5)
    writer.close()
    await eventually(is_gone, within=5)
    assert await lonely_api.rows("SELECT id FROM videos") == []


async def test_an_idempotency_key_repeats_the_first_answer(lonely_api: Api) -> None:
    key = {"Idempotency-Key": "abc"}
    first = await lonely_api.http.put("/api/videos", content=VIDEO, headers=key)
    second = await lonely_api.http.put("/api/videos", content=pieces(b"another" * 100_000), headers=key)
    third = await lonely_api.http.post("/api/videos", files={"file": ("x", b"third")}, headers=key)
    assert first.status_code == second.status_code == third.status_code == 201
    assert first.json() == second.json() == third.json()
    assert "idempotent-replayed" not in first.headers
    assert second.headers["idempotent-replayed"] == third.headers["idempotent-replayed"] == "true"
    assert list(lonely_api.files().values()) == [VIDEO]
    other = await lonely_api.http.put("/api/videos", content=VIDEO, headers={"Idempotency-Key": "abd"})
    assert other.json()["video_id"] != first.json()["video_id"]


async def test_the_same_key_at_the_same_time_makes_one_video(lonely_api: Api) -> None:
    key = {"Idempotency-Key": "abc"}
    answers = await asyncio.gather(
        *(lonely_api.http.put("/api/videos", content=pieces(VIDEO), headers=key) for _ in range(6))
    )
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.text for answer in answers}) == 1
    assert len(await lonely_api.rows("SELECT id FROM videos")) == 1
    assert lonely_api.files() == {f"uploads/{answers[0].json()['video_id']}": VIDEO}


async def test_changes_and_readings_need_the_secret_and_health_does_not(database_url: str, tmp_path: Path) -> None:
    async with serving(database_url, tmp_path / "storage", admin_secret="s3cret-ü") as api:
        await refused(api, await api.http.put("/api/videos", content=VIDEO), 401, "ADMIN_SECRET_REQUIRED")
        wrong = {"X-Admin-Secret": "s3cret"}
        await refused(api, await api.http.put("/api/videos", content=VIDEO, headers=wrong), 403, "ADMIN_SECRET_WRONG")
        form = {"file": ("a.mp4", VIDEO)}
        await refused(api, await api.http.post("/api/videos", files=form, headers=wrong), 403, "ADMIN_SECRET_WRONG")
        right = {b"X-Admin-Secret": "s3cret-ü".encode()}
        assert (await api.http.put("/api/videos", content=VIDEO, headers=right)).status_code == 201
        for path in (
            "/api/videos",
            "/api/videos/1",
            "/api/videos/1/progress",
            "/api/jobs",
            "/api/jobs/1",
            *(f"/api/jobs/1/{what}" for what in ("steps", "events")),
        ):
            answer = await api.http.get(path)
            assert (answer.status_code, answer.json()["error"]) == (401, "ADMIN_SECRET_REQUIRED"), path
            assert (await api.http.get(path, headers=right)).status_code in (200, 404)
        for path in ("/health", "/api/health", "/", "/docs", "/openapi.json"):
            answer = await api.http.get(path, headers={"Host": "video.example"})
            assert answer.status_code in (200, 503) and "s3cret" not in answer.text, path


async def test_a_name_that_was_made_to_point_here_is_not_answered_without_a_secret(lonely_api: Api) -> None:
    api = lonely_api
    for host in (
        "evil.example",
        f"evil.example:{api.port}",
        "127.0.0.1.evil.example",
        "0.0.0.0",
        "[::1",
        "localhost.x",
    ):
        same = {"Host": host, "Origin": f"http://{host}"}
        await refused(api, await api.http.put("/api/videos", content=VIDEO, headers=same), 421, "HOST_UNKNOWN")
        for path in ("/api/videos", "/api/health", "/"):
            answer = await api.http.get(path, headers={"Host": host})
            assert (answer.status_code, answer.json()["error"]) == (421, "HOST_UNKNOWN"), (host, path)
    for host in (f"127.0.0.1:{api.port}", "localhost", "LOCALHOST:9000", "127.8.0.1", "[::1]:9000"):
        assert (await api.http.get("/api/videos", headers={"Host": host})).status_code == 200, host


async def test_a_page_of_another_site_cannot_upload_on_behalf_of_its_visitor(lonely_api: Api) -> None:
    api = lonely_api
    for origin in ("https://evil.example", "null"):
        answer = await api.http.put("/api/videos", content=VIDEO, headers={"Origin": origin})
        await refused(api, answer, 403, "ORIGIN_FORBIDDEN")
    assert (await api.http.put("/api/videos", content=VIDEO, headers={"Origin": api.url})).status_code == 201


@pytest.mark.parametrize(
    ("kind", "body", "code"),
    [
        ("multipart/form-data", b"", "MULTIPART_INVALID"),
        ("multipart/form-data; boundary=" + "X" * 300, b"--X", "MULTIPART_INVALID"),
        ("multipart/form-data; boundary=X", os.urandom(100_000), "MULTIPART_INVALID"),
        ("multipart/form-data; boundary=X", b"--X\r\n" + b"A: b\r\n" * 50, "MULTIPART_INVALID"),
        ("multipart/form-data; boundary=X", b"--X\r\nContent-Disposition: form-data\r\n\r\n", "MULTIPART_INVALID"),
        (
            "multipart/form-data; boundary=X",
            b'--X\r\nContent-Disposition: form-data; name="file"\r\n\r\n' + VIDEO,
            "MULTIPART_INVALID",
        ),
        ("application/json", b"{}", "MULTIPART_EXPECTED"),
        ("application/x-www-form-urlencoded", b"file=x", "MULTIPART_EXPECTED"),
    ],
)
async def test_a_hostile_form_is_refused_and_leaves_nothing(lonely_api: Api, kind: str, body: bytes, code: str) -> None:
    answer = await lonely_api.http.post("/api/videos", content=body, headers={"Content-Type": kind})
    await refused(lonely_api, answer, 415 if code == "MULTIPART_EXPECTED" else 400, code)


async def test_a_number_whose_source_is_stored_is_passed_over(lonely_api: Api) -> None:
    """A database that was restored from an older copy gives numbers again: nothing that is stored is written over."""
    api = lonely_api
    [last] = [row["last_value"] for row in await api.rows("SELECT last_value FROM videos_id_seq")]
    kept = {f"uploads/{last + 1}.mp4": b"a film", f"uploads/{last + 5}.mov": b"another"}
    (api.root / "uploads").mkdir(exist_ok=True)
    for key, data in kept.items():
        (api.root / key).write_bytes(data)
    answer = await api.http.put("/api/videos", params={"filename": "new.mp4"}, content=VIDEO)
    assert answer.status_code == 201, answer.text
    new = answer.json()["video_id"]
    assert new > last + 5
    assert api.files() == {**kept, f"uploads/{new}.mp4": VIDEO}


async def test_a_slug_under_which_streams_are_stored_is_passed_over(lonely_api: Api) -> None:
    """The database was lost, the storage was not: segments that lie there would count as the new video's own."""
    api = lonely_api
    for slug in ("film", "film-2"):
        (api.root / "videos" / slug / "r1/360p").mkdir(parents=True)
        (api.root / "videos" / slug / "r1/360p/seg_00000.m4s").write_bytes(b"of another film")
    slugs = []
    for _ in range(2):
        answer = await api.http.put("/api/videos", params={"filename": "film.mp4"}, content=VIDEO)
        assert answer.status_code == 201, answer.text
        slugs.append(answer.json()["slug"])
    assert slugs == ["film-3", "film-4"]
    assert [row["slug"] for row in await api.rows("SELECT slug FROM videos ORDER BY id")] == slugs
