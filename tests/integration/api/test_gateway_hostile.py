"""What a worker must not be able to do with its key and a claim, however it asks."""

import asyncio
import base64
import errno
import hashlib
import json
from collections.abc import AsyncIterator

import pytest

from api import claims, open_calls, worker_files
from tests.integration.api.claiming import Remote, Waiting, claimed, post, step
from tests.integration.api.running import Api
from tests.integration.api.workers import refused, register
from tests.support.eventually import eventually

KEYS = (
    "{folder}seg_00004.m4s",  # one after its span
    "{folder}seg_0.m4s",
    "{folder}xseg_00000.m4s",
    "{folder}.hidden",
    "{folder}playlist.m3u8",
    "{folder}timelines/job1-g0a1.json",
    "{folder}../720p/init.mp4",
    "{folder}%2e%2e/init.mp4",
    "{folder}init.mp4%00",
    "{folder}/init.mp4",
    "videos/{slug}/r1/1080p/init.mp4",  # not of its list
    "videos/{slug}/r2/720p/init.mp4",
    "videos/{slug}/thumbnail.jpg",
    "videos/{slug}/master.m3u8",
    "videos/another/r1/720p/init.mp4",
    "uploads/{video}.mp4",
    "../../etc/passwd",
    "%2e%2e/%2e%2e/etc/passwd",
    "/etc/passwd",
)


async def test_keys_claims_and_paths_of_others_open_nothing(api: Api) -> None:
    async with step(api) as waiting:
        remote = await claimed(api)
        before = api.files()
        await _other_claims(api, remote, waiting)
        await _other_keys(api, remote, waiting)
        assert api.files() == before
        # All of that has done its own claim no harm.
        assert (await remote.tell("progress")).status_code == 200
        await _shut_out(api, remote, waiting)


async def _other_claims(api: Api, remote: Remote, waiting: Waiting) -> None:
    """Claims of another worker, changed ones, made-up ones."""
    other = await register(api, "other")
    stolen = Remote(other, api, remote.claimed)
    sealed = base64.urlsafe_b64decode(remote.claim)
    body = json.loads(sealed[32:])
    forged = body | {"folders": ["videos/another/r1/720p/"]}
    remade = base64.urlsafe_b64encode(sealed[:32] + json.dumps(forged).encode()).decode()
    flipped = base64.urlsafe_b64encode(bytes([sealed[0] ^ 1]) + sealed[1:]).decode()
    unsealed = base64.urlsafe_b64encode(b"\0" * 32 + sealed[32:]).decode()
    bare = base64.urlsafe_b64encode(base64.b64decode(body["token"])).decode()  # Temporal's own, as it is
    mine = [
        Remote(remote.machine, api, {"claim": text})
        for text in (remade, flipped, unsealed, bare, remote.claim[:-4], remote.claim + "AAAA", "x", "ä", "..", "%00")
    ]
    for liar in (stolen, *mine):
        for answer in (
            await liar.tell("progress"),
            await liar.tell("complete", result={"segments": 4}),
            await liar.tell("fail", code="SOURCE_UNREADABLE"),
        ):
            assert refused(answer) == (403, "CLAIM_NOT_YOURS"), liar.claim
    for liar in (stolen, *mine[:6]):
        for answer in (
            await liar.put(waiting.folder + "init.mp4", b"x"),
            await liar.get(f"output/{waiting.folder}"),
            await liar.get(f"source/{waiting.span.source_key}"),
        ):
            assert refused(answer) == (403, "CLAIM_NOT_YOURS")


async def _other_keys(api: Api, remote: Remote, waiting: Waiting) -> None:
    """Objects that are not the step's, however they are spelled."""
    video, slug = waiting.span.video_id, waiting.span.slug
    for pattern in KEYS:
        key = pattern.format(folder=waiting.folder, slug=slug, video=video)
        raw = f"/api/worker/output/{key}".encode()
        checksum = hashlib.sha256(b"x").hexdigest()
        head = f"Host: localhost\r\nX-Worker-API-Key: {remote.machine.key}\r\nX-Worker-Claim: {remote.claim}\r\n"
        for method, rest in (
            ("PUT", f"X-Content-SHA256: {checksum}\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx"),
            ("GET", "Connection: close\r\n\r\n"),
            ("DELETE", "Connection: close\r\n\r\n"),
        ):
            said = await api.raw(method.encode() + b" " + raw + b" HTTP/1.1\r\n" + head.encode() + rest.encode())
            assert said.split(b" ")[1] in (b"403", b"404"), (method, key, said[:200])
        if key != waiting.span.source_key:
            assert (await remote.get(f"source/{key}")).status_code in (403, 404)
    for folder in ("", "videos/", f"videos/{slug}/", f"videos/{slug}/r1/1080p/", "uploads/"):
        assert (await remote.get(f"output/{folder}")).status_code in (403, 404, 405)
    # Its own segments it may make, not unmake.
    removed = await api.http.delete(f"/api/worker/output/{waiting.folder}init.mp4", headers=remote.headers)
    assert refused(removed) == (403, "KEY_FORBIDDEN")


async def _shut_out(api: Api, remote: Remote, waiting: Waiting) -> None:
    """Whoever is disabled, or whose key is good no more, may only give back; and then it is heard in nothing else."""
    disabled = await remote.machine.command("PUT", "disable")
    assert disabled.status_code == 200
    # As a worker says whose segment was refused; and lies.
    upset = {"code": "STORAGE_UPLOAD_FAILED", "error_message": "This worker is disabled.", "retry_delay_s": 5}
    lie = {"code": "SOURCE_UNREADABLE", "error_message": "No video.", "retry_after_s": 600}
    await _only_gives_back(api, remote, waiting, (403, "WORKER_DISABLED"), upset)
    remote = await claimed(api, "second")
    assert (await remote.machine.command("POST", "revoke")).status_code == 200
    await _only_gives_back(api, remote, waiting, (401, "WORKER_KEY_REVOKED"), lie)
    remote = await claimed(api, "third")
    await api.change("UPDATE worker_api_keys SET expires_at = now()")
    await _only_gives_back(api, remote, waiting, (401, "WORKER_KEY_EXPIRED"), lie)
    remote = await claimed(api, "fourth")
    assert (remote.claimed["generation"], remote.claimed["attempt"]) == (3, 1), "none of that has cost an attempt"

    async def all_is_told() -> bool:
        given_back = [("partial", generation, 1, "DRAINED") for generation in range(3)]
        return await waiting.attempts() == [*given_back, ("running", 3, 1, None)]

    await eventually(all_is_told, within=10)
    nobody = Remote(type(remote.machine)(api, "x", "A" * 43), api, remote.claimed)
    for answer in (await nobody.tell("progress"), await nobody.tell("fail", code="DRAINED")):
        assert refused(answer) == (401, "WORKER_KEY_INVALID")


async def _only_gives_back(
    api: Api, remote: Remote, waiting: Waiting, refusal: tuple[int, str], last_word: dict[str, object]
) -> None:
    for answer in (
        await remote.tell("progress"),
        await remote.put(waiting.folder + "init.mp4", b"x"),
        await remote.get(f"source/{waiting.span.source_key}"),
        await post(api, remote.machine, "claim", pool="cpu", wait_s=3),
    ):
        assert refused(answer) == refusal
    if refusal[0] == 401:
        assert refused(await remote.tell("complete", result={"segments": 4})) == refusal
    unsealed = Remote(remote.machine, api, {"claim": remote.claim[:-4]})
    assert refused(await unsealed.tell("fail", **last_word)) == (403, "CLAIM_NOT_YOURS")
    assert (await remote.tell("fail", **last_word)).status_code == 200
    assert (await remote.tell("fail", **last_word)).status_code == 409


async def test_only_whole_objects_of_a_sane_size_are_stored(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "SEGMENT_BYTES", 1000)
    async with step(api) as waiting:
        remote = await claimed(api)
        key = waiting.folder + "seg_00000.m4s"
        before = api.files()
        assert refused(await remote.put(key, b"x" * 1001)) == (413, "OUTPUT_TOO_LARGE")
        assert refused(await remote.put(key, b"x", hashlib.sha256(b"y").hexdigest())) == (400, "CHECKSUM_WRONG")
        for checksum in ("", "x" * 64, "a" * 63, hashlib.sha256(b"x").hexdigest().upper()):
            headers = remote.headers | {"X-Content-SHA256": checksum}
            answer = await api.http.put(f"/api/worker/output/{key}", content=b"x", headers=headers)
            assert answer.status_code == 400, checksum
        lines = {"Host": "localhost", "X-Content-SHA256": hashlib.sha256(b"x" * 2000).hexdigest()} | remote.headers
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        start = f"PUT /api/worker/output/{key} HTTP/1.1\r\n{head}".encode()
        # More than was announced to fit, sent without a length …
        chunked = b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n7d0\r\n" + b"x" * 2000 + b"\r\n0\r\n\r\n"
        assert b" 413 " in (await api.raw(start + chunked))[:20]
        # … and less than was announced, for the connection breaks.
        _, writer = await asyncio.open_connection("127.0.0.1", api.port)
        writer.write(start + b"Content-Length: 900\r\n\r\n" + b"x" * 100)
        await writer.drain()
        writer.close()
        assert (await remote.tell("progress")).status_code == 200
        with monkeypatch.context() as disk:
            disk.setattr(worker_files, "_write", _no_room)
            assert refused(await remote.put(key, b"x")) == (507, "STORAGE_FULL")

        async def nothing_is_left() -> bool:
            return api.files() == before

        await eventually(nothing_is_left, within=5)
        assert (await remote.put(key, b"x" * 1000)).json() == {"key": key, "created": True}
        # The first one stays, whatever comes after it.
        assert (await remote.put(key, b"y" * 1000)).json() == {"key": key, "created": False}
        assert api.files()[key] == b"x" * 1000


def _no_room(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


async def test_one_key_opens_only_so_much_at_a_time(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_calls, "MOST_QUESTIONS", 1)
    monkeypatch.setattr(open_calls, "MOST_FILES", 1)
    async with step(api) as waiting:
        remote = await claimed(api)
        asking = asyncio.create_task(post(api, remote.machine, "claim", pool="gpu", wait_s=3))
        await asyncio.sleep(0.3)
        again = await post(api, remote.machine, "claim", pool="gpu", wait_s=3)
        assert (refused(again), again.headers["Retry-After"]) == ((429, "TOO_MANY_CLAIMS"), "5")
        assert (await asking).status_code == 204

        coming = asyncio.Event()

        async def slowly() -> AsyncIterator[bytes]:
            yield b"x"
            await coming.wait()
            yield b"y"

        key, headers = waiting.folder + "seg_00000.m4s", {"X-Content-SHA256": hashlib.sha256(b"xy").hexdigest()}
        path = f"/api/worker/output/{key}"
        sending = asyncio.create_task(api.http.put(path, content=slowly(), headers=remote.headers | headers))
        await asyncio.sleep(0.3)
        assert refused(await remote.put(waiting.folder + "init.mp4", b"x")) == (429, "TOO_MANY_FILES")
        coming.set()
        assert (await sending).json() == {"key": key, "created": True}
        assert (await remote.put(waiting.folder + "init.mp4", b"x")).status_code == 200

        # What arrives when the step is somebody else's by now is not stored.
        coming.clear()
        path = f"/api/worker/output/{waiting.folder}seg_00001.m4s"
        sending = asyncio.create_task(api.http.put(path, content=slowly(), headers=remote.headers | headers))
        await asyncio.sleep(0.3)
        assert (await remote.tell("fail", code="DRAINED")).status_code == 200
        coming.set()
        assert refused(await sending) == (409, "CLAIM_EXPIRED")
        assert waiting.folder + "seg_00001.m4s" not in api.files()


async def test_results_and_progress_that_cannot_be_are_not_passed_on(api: Api) -> None:
    async with step(api) as waiting:
        remote = await claimed(api)
        for result in ({}, {"segments": "many"}, {"segments": None}, {"segments": [4]}):
            assert refused(await remote.tell("complete", result=result))[0] == 422
        assert refused(await remote.tell("complete", result="all of it"))[0] == 422
        boast = {
            "percent": 1e308,
            "frames": -5,
            "speed": -1e308,
            "qualities": [
                {"quality": "720p", "segments_total": 9999, "segments_completed": 9999, "percent": 400.0},
                {"quality": "'; DROP TABLE videos", "segments_total": 1, "segments_completed": 1, "percent": 1.0},
            ],
        }
        assert (await remote.tell("progress", progress=boast)).status_code == 200

        async def is_shown() -> bool:
            rows = await api.rows("SELECT percent, progress FROM job_steps WHERE job_id = :j", j=waiting.span.job_id)
            told = [(row["percent"], (row["progress"] or {}).get("qualities")) for row in rows]
            return told == [
                (100.0, [{"quality": "720p", "segments_total": 4, "segments_completed": 4, "percent": 100.0}])
            ]

        await eventually(is_shown, within=10)
        assert (await remote.tell("progress", progress={"percent": "NaN"})).status_code in (200, 422)
        assert refused(await remote.tell("progress", progress={"qualities": ["x" * 70_000]})) == (
            413,
            "REQUEST_TOO_LARGE",
        )
        assert (await remote.tell("complete", result={"segments": 4, "prefix": "videos/another/"})).status_code == 200
        assert (await waiting.handle.result()).segments == 4
