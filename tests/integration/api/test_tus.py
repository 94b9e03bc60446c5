"""Resumable uploads: pieces in order, one writer, and a video at the end; or a refusal that changes nothing."""

import base64
import errno
import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.api.running import Api, serving

DATA = b"\x00\x00\x00\x18ftypisom" + os.urandom(300_000)
TUS = {"Tus-Resumable": "1.0.0"}
PIECE = {"Content-Type": "application/offset+octet-stream"}


def b64(data: str | bytes) -> str:
    return base64.b64encode(data.encode() if isinstance(data, str) else data).decode()


async def begin(api: Api, size: int = len(DATA), metadata: str = "", secret: str = "") -> str:
    more = {name: value for name, value in (("Upload-Metadata", metadata), ("X-Admin-Secret", secret)) if value}
    answer = await api.http.post("/api/uploads", headers=TUS | {"Upload-Length": str(size)} | more)
    assert answer.status_code == 201, answer.text
    assert answer.headers["upload-expires"].endswith(" GMT") and answer.headers["upload-offset"] == "0"
    return answer.headers["location"]


async def send(api: Api, url: str, at: int, data: bytes | AsyncIterator[bytes], **headers: str) -> httpx.Response:
    return await api.http.patch(url, content=data, headers=TUS | PIECE | {"Upload-Offset": str(at)} | headers)


async def offset(api: Api, url: str) -> int:
    answer = await api.http.head(url, headers=TUS)
    assert answer.status_code == 200 and answer.headers["cache-control"] == "no-store"
    return int(answer.headers["upload-offset"])


def says(answer: httpx.Response) -> tuple[int, str]:
    assert answer.headers["tus-resumable"] == "1.0.0"
    return answer.status_code, answer.json()["error"]


async def test_pieces_become_a_video_by_the_same_way_in(lonely_api: Api) -> None:
    api = lonely_api
    said = {"filename": "My Film.MP4", "title": "Grüße", "owner": "ana", "tier": "creator", "qualities": "720p,360p"}
    metadata = ",".join([*(f"{name} {b64(value)}" for name, value in said.items()), f"description {b64('two')}", "x"])
    url = await begin(api, metadata=metadata)
    assert await api.rows("SELECT id FROM videos") == [] and api.files() == {}
    first = await send(api, url, 0, DATA[:100_000])
    assert (first.status_code, first.headers["upload-offset"]) == (204, "100000")
    assert "upload-expires" in first.headers and "vlog-video-id" not in first.headers
    looked = await api.http.head(url, headers=TUS)
    assert (looked.headers["upload-length"], looked.headers["upload-metadata"]) == (str(len(DATA)), metadata)

    last = await send(api, url, 100_000, DATA[100_000:])
    assert (last.status_code, last.headers["upload-offset"]) == (204, str(len(DATA)))
    [video] = await api.rows("SELECT * FROM videos")
    assert last.headers["vlog-video-id"] == str(video["id"])
    assert api.files() == {f"uploads/{video['id']}.mp4": DATA}
    assert (video["title"], video["owner"], video["tier"]) == ("Grüße", "ana", "creator")
    assert (video["source_filename"], video["source_size_bytes"]) == ("My Film.MP4", len(DATA))
    assert video["description"] == "two"
    [job] = await api.rows("SELECT * FROM transcoding_jobs")
    assert job["qualities"] == ["720p", "360p"]
    assert [event["event"] for event in await api.rows("SELECT event FROM job_events")] == ["job.created"]

    after = await api.http.head(url, headers=TUS)  # the answer to the last piece was lost: the client looks
    assert (after.headers["upload-offset"], after.headers["vlog-video-id"]) == (str(len(DATA)), str(video["id"]))
    again = await send(api, url, len(DATA), b"")
    assert (again.status_code, again.headers["vlog-video-id"]) == (204, str(video["id"]))
    assert (await api.http.delete(url, headers=TUS)).status_code == 204
    assert api.files() == {f"uploads/{video['id']}.mp4": DATA}


async def test_the_first_bytes_may_come_along_and_all_of_them_too(lonely_api: Api) -> None:
    for sent in (1000, len(DATA)):
        answer = await lonely_api.http.post(
            "/api/uploads/", content=DATA[:sent], headers=TUS | PIECE | {"Upload-Length": str(len(DATA))}
        )
        assert (answer.status_code, answer.headers["upload-offset"]) == (201, str(sent))
        assert ("vlog-video-id" in answer.headers) is (sent == len(DATA))
        assert await offset(lonely_api, answer.headers["location"]) == sent


async def test_a_bad_checksum_leaves_the_offset_and_a_good_one_moves_it(lonely_api: Api) -> None:
    url, piece = await begin(lonely_api), DATA[:200_000]
    right = {"Upload-Checksum": f"sha1 {b64(hashlib.sha1(piece).digest())}"}
    bad = await send(lonely_api, url, 0, piece[:-1] + b"?", **right)
    assert says(bad) == (460, "CHECKSUM_MISMATCH")
    assert await offset(lonely_api, url) == 0
    assert (await send(lonely_api, url, 0, piece, **right)).headers["upload-offset"] == "200000"
    rest = DATA[200_000:]
    assert says(await send(lonely_api, url, 200_000, b"x" * len(rest), **right)) == (460, "CHECKSUM_MISMATCH")
    right = {"Upload-Checksum": f"sha256 {b64(hashlib.sha256(rest).digest())}"}
    done = await send(lonely_api, url, 200_000, rest, **right)
    assert list(lonely_api.files().values()) == [DATA] and "vlog-video-id" in done.headers
    headers = TUS | PIECE | {"Upload-Length": "4", "Upload-Checksum": f"md5 {b64(hashlib.md5(b'no').digest())}"}
    along = await lonely_api.http.post("/api/uploads", content=b"film", headers=headers)
    assert says(along) == (460, "CHECKSUM_MISMATCH")
    assert len(await lonely_api.rows("SELECT id FROM uploads")) == 1


async def test_giving_up_frees_the_bytes_and_an_upload_whose_time_is_over_is_gone(lonely_api: Api) -> None:
    url = await begin(lonely_api)
    await send(lonely_api, url, 0, DATA[:1000])
    assert (await lonely_api.http.delete(url, headers=TUS)).status_code == 204
    assert lonely_api.files() == {} and await lonely_api.rows("SELECT id FROM uploads") == []
    over = await begin(lonely_api)
    await send(lonely_api, over, 0, DATA[:1000])
    await lonely_api.change("UPDATE uploads SET expires_at = now() - interval '1 second'")
    for gone in (url, over, "/api/uploads/x", "/api/uploads/" + "a" * 32, "/api/uploads/%2e%2e"):
        why = (410, "UPLOAD_EXPIRED") if gone == over else (404, "UPLOAD_NOT_FOUND")
        looked = await lonely_api.http.head(gone, headers=TUS)
        assert (looked.status_code, looked.headers["cache-control"]) == (why[0], "no-store")
        assert "upload-offset" not in looked.headers
        assert says(await send(lonely_api, gone, 1000, b"x")) == why
        assert says(await lonely_api.http.delete(gone, headers=TUS)) == why


async def test_time_runs_from_the_last_byte(lonely_api: Api) -> None:
    url = await begin(lonely_api)
    await lonely_api.change("UPDATE uploads SET expires_at = now() + interval '1 hour'")
    await send(lonely_api, url, 0, DATA[:1000])
    [row] = await lonely_api.rows("SELECT expires_at - now() > interval '23 hours' AS moved FROM uploads")
    assert row["moved"]


async def test_an_upload_whose_bytes_were_lost_is_begun_anew(lonely_api: Api) -> None:
    for sent in (1000, len(DATA)):
        url = await begin(lonely_api)
        await send(lonely_api, url, 0, DATA[:1000])
        [row] = await lonely_api.rows("SELECT key FROM uploads")
        (lonely_api.root / "partial" / row["key"]).unlink()
        await lonely_api.change("UPDATE uploads SET offset_bytes = :sent", sent=sent)
        assert says(await send(lonely_api, url, sent, DATA[sent:])) == (404, "UPLOAD_NOT_FOUND")
        assert await lonely_api.rows("SELECT id FROM uploads") == [] and lonely_api.files() == {}


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"Tus-Resumable": "0.2.2"}, 412, "TUS_VERSION_UNKNOWN"),
        ({"Upload-Offset": "7"}, 409, "OFFSET_WRONG"),
        ({"Upload-Offset": "-1"}, 400, "UPLOAD_OFFSET_INVALID"),
        ({"Upload-Offset": "9" * 30}, 400, "UPLOAD_OFFSET_INVALID"),
        ({"Upload-Offset": "9" * 18}, 409, "OFFSET_WRONG"),
        ({"Content-Type": "application/octet-stream"}, 415, "CONTENT_TYPE_WRONG"),
        ({"Upload-Checksum": "crc32 AAAA"}, 400, "CHECKSUM_UNSUPPORTED"),
        ({"Upload-Checksum": "sha1 ?"}, 400, "UPLOAD_CHECKSUM_INVALID"),
    ],
)
async def test_a_wrong_piece_changes_nothing(lonely_api: Api, change: dict[str, str], status: int, code: str) -> None:
    url = await begin(lonely_api)
    assert says(await send(lonely_api, url, 0, DATA[:100], **change)) == (status, code)
    assert await offset(lonely_api, url) == 0 and lonely_api.files() == {}


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({}, 400, "UPLOAD_LENGTH_INVALID"),
        ({"Upload-Defer-Length": "1"}, 400, "UPLOAD_LENGTH_INVALID"),
        ({"Upload-Length": "-5"}, 400, "UPLOAD_LENGTH_INVALID"),
        ({"Upload-Length": "9" * 5000}, 400, "UPLOAD_LENGTH_INVALID"),
        ({"Upload-Length": "0"}, 400, "SOURCE_EMPTY"),
        ({"Upload-Length": "5", "Upload-Concat": "partial"}, 400, "CONCATENATION_UNSUPPORTED"),
        ({"Upload-Length": "1e3"}, 400, "UPLOAD_LENGTH_INVALID"),
        ({"Upload-Length": "500001"}, 413, "UPLOAD_TOO_LARGE"),
        ({"Upload-Length": "5", "Upload-Metadata": "title ?"}, 400, "UPLOAD_METADATA_INVALID"),
        ({"Upload-Length": "5", "Upload-Metadata": f"title {b64('t' * 300)}"}, 400, "TITLE_TOO_LONG"),
        ({"Upload-Length": "5", "Upload-Metadata": f"tier {b64('gold')}"}, 400, "TIER_INVALID"),
        ({"Upload-Length": "5", "Upload-Metadata": f"owner {b64(bytes(3))}"}, 400, "OWNER_INVALID"),
    ],
)
async def test_what_cannot_become_a_video_is_refused_at_the_beginning(
    database_url: str, tmp_path: Path, headers: dict[str, str], status: int, code: str
) -> None:
    async with serving(database_url, tmp_path / "storage", max_upload_size=500_000) as api:
        assert says(await api.http.post("/api/uploads", headers=TUS | headers)) == (status, code)
        assert await api.rows("SELECT id FROM uploads") == []


async def test_more_than_was_announced_is_refused_by_its_length_or_while_it_arrives(lonely_api: Api) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(5):
            yield bytes(1000)

    url = await begin(lonely_api, size=2500)
    assert says(await send(lonely_api, url, 0, bytes(2501))) == (413, "UPLOAD_TOO_LARGE")
    assert await offset(lonely_api, url) == 0
    assert says(await send(lonely_api, url, 0, endless())) == (413, "UPLOAD_TOO_LARGE")
    assert await offset(lonely_api, url) <= 2500 and await lonely_api.rows("SELECT id FROM videos") == []


async def test_nobody_sends_a_byte_without_the_secret_and_everybody_is_told_what_is_offered(
    database_url: str, tmp_path: Path
) -> None:
    async with serving(database_url, tmp_path / "storage", admin_secret="hush", max_upload_size=10**6) as api:
        secret = {"X-Admin-Secret": "hush"}
        url = await begin(api, secret="hush")
        assert says(await send(api, url, 0, DATA)) == (401, "ADMIN_SECRET_REQUIRED")
        head = f"PATCH {url} HTTP/1.1\r\nHost: x\r\nTus-Resumable: 1.0.0\r\nUpload-Offset: 0\r\n"
        refused = await api.raw(f"{head}Content-Length: 99999\r\nExpect: 100-continue\r\n\r\n".encode())
        assert refused.startswith(b"HTTP/1.1 401")
        assert (await api.http.head(url, headers=TUS)).status_code == 401
        assert says(await api.http.delete(url, headers=TUS)) == (401, "ADMIN_SECRET_REQUIRED")
        assert says(await api.http.post("/api/uploads", headers=TUS)) == (401, "ADMIN_SECRET_REQUIRED")
        assert api.files() == {}

        told = await api.http.options("/api/uploads", headers={"Origin": "https://a.example"})
        assert (told.status_code, told.headers["tus-version"], told.headers["tus-max-size"]) == (
            204,
            "1.0.0",
            "1000000",
        )
        assert told.headers["tus-extension"] == "creation,creation-with-upload,termination,checksum,expiration"
        assert told.headers["tus-checksum-algorithm"] == "sha1,sha256,md5"
        assert "PATCH" in told.headers["access-control-allow-methods"]
        assert "X-Admin-Secret" in told.headers["access-control-allow-headers"]
        there = await api.http.head(url, headers=TUS | secret | {"Origin": "https://a.example"})
        assert (
            there.headers["access-control-allow-origin"] == "*"
            and "access-control-allow-credentials" not in there.headers
        )
        assert "Vlog-Video-Id" in there.headers["access-control-expose-headers"]


async def test_without_a_secret_no_other_site_is_even_told_how(lonely_api: Api) -> None:
    told = await lonely_api.http.options("/api/uploads", headers={"Origin": "https://a.example"})
    assert told.status_code == 204 and "access-control-allow-origin" not in told.headers
    foreign: dict[str, Any] = TUS | {"Upload-Length": "5", "Origin": "https://a.example"}
    assert says(await lonely_api.http.post("/api/uploads", headers=foreign)) == (403, "ORIGIN_FORBIDDEN")


async def test_a_proxy_that_knows_only_post_is_no_obstacle(lonely_api: Api) -> None:
    url = await begin(lonely_api)
    headers = TUS | PIECE | {"Upload-Offset": "0", "X-HTTP-Method-Override": "PATCH"}
    assert (await lonely_api.http.post(url, content=DATA[:10], headers=headers)).headers["upload-offset"] == "10"
    gone = await lonely_api.http.post(url, headers=TUS | {"X-HTTP-Method-Override": "delete"})
    assert gone.status_code == 204 and lonely_api.files() == {}


async def test_a_full_disk_keeps_what_was_counted_and_the_upload_goes_on(
    lonely_api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = await begin(lonely_api)
    await send(lonely_api, url, 0, DATA[:100_000])
    with monkeypatch.context() as full:
        really = os.write

        def half(handle: int, data: memoryview) -> int:
            if len(data) < 50_000:
                raise OSError(errno.ENOSPC, "No space left on device")
            return really(handle, data[: len(data) // 2])

        full.setattr("storage.partial.os.write", half)
        assert says(await send(lonely_api, url, 100_000, DATA[100_000:])) == (507, "STORAGE_FULL")
    assert await offset(lonely_api, url) == 100_000
    assert (await send(lonely_api, url, 100_000, DATA[100_000:])).status_code == 204
    assert list(lonely_api.files().values()) == [DATA]


async def test_a_name_never_becomes_a_path(lonely_api: Api) -> None:
    name = "../../etc/pass\x00wd\x1b[31m\u202e.mp4"
    url = await begin(lonely_api, size=3, metadata=f"filename {b64(name)}")
    done = await send(lonely_api, url, 0, b"abc")
    [video] = await lonely_api.rows("SELECT id, source_filename, title FROM videos")
    assert (video["source_filename"], video["title"]) == ("passwd[31m.mp4", "passwd[31m")
    assert lonely_api.files() == {f"uploads/{done.headers['vlog-video-id']}.mp4": b"abc"}


async def test_hostile_lengths_are_refused_and_the_next_request_is_answered(lonely_api: Api) -> None:
    url = await begin(lonely_api, size=10)
    head = f"PATCH {url} HTTP/1.1\r\nHost: localhost\r\nTus-Resumable: 1.0.0\r\nUpload-Offset: 0\r\n"
    head += f"Content-Type: {PIECE['Content-Type']}\r\nConnection: close\r\n"
    for length in ("-1", "9" * 5000, "1e3", "18446744073709551616"):
        answer = await lonely_api.raw(f"{head}Content-Length: {length}\r\n\r\nabc".encode())
        assert answer.startswith(b"HTTP/1.1 4"), (length, answer[:100])
    assert await offset(lonely_api, url) == 0
