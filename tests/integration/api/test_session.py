"""Signing in: the secret once, then a cookie, which no other site's page can use."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from http.cookies import Morsel, SimpleCookie
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.guessing import BURST
from api.signed_in import LASTS_S, SignedIn
from api.signing import Keys
from tests.integration.api.running import Api, serving
from tests.integration.mirror import story
from tests.support.events import following

SECRET = "s3cret-ü"


@pytest.fixture
async def locked(database_url: str, tmp_path: Path) -> AsyncIterator[Api]:
    async with serving(database_url, tmp_path / "storage", admin_secret=SECRET) as api:
        yield api


def cookie_of(answer: httpx.Response) -> Morsel[str]:
    [morsel] = SimpleCookie(answer.headers["set-cookie"]).values()
    return morsel


def says(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]


async def test_the_cookie_stands_for_the_secret_until_signing_out(locked: Api) -> None:
    http = locked.http
    before = (await http.get("/api/session")).json()
    assert before == {"signed_in": False, "secret_required": True, "expires_at": None}
    assert says(await http.get("/api/videos")) == (401, "ADMIN_SECRET_REQUIRED")
    assert says(await http.post("/api/session", json={"secret": "s3cret"})) == (403, "ADMIN_SECRET_WRONG")

    signed = await http.post("/api/session", json={"secret": SECRET})
    assert signed.status_code == 200 and signed.json()["signed_in"] is True
    assert signed.headers["cache-control"] == "no-store"
    cookie = cookie_of(signed)
    assert (cookie.key, cookie["httponly"], cookie["samesite"], cookie["path"]) == ("vlog_session", True, "strict", "/")
    assert not cookie["secure"] and not cookie["domain"] and int(cookie["max-age"]) == LASTS_S
    assert SECRET not in signed.text and SECRET not in cookie.value

    for path in ("/api/videos", "/api/jobs", "/api/workers", "/api/events", "/metrics"):
        assert (await http.get(path)).status_code == 200, path
    now = (await http.get("/api/session")).json()
    assert now["signed_in"] is True and now["expires_at"] == signed.json()["expires_at"]

    ours = {"Origin": locked.url}
    out = await http.delete("/api/session", headers=ours)
    assert out.json() == {"signed_in": False, "secret_required": True, "expires_at": None}
    assert says(await http.get("/api/videos")) == (401, "ADMIN_SECRET_REQUIRED")
    kept = {"Cookie": f"vlog_session={cookie.value}"}
    assert says(await http.get("/api/videos", headers=kept)) == (401, "ADMIN_SECRET_REQUIRED"), "nor does a copy of it"


async def test_streams_end_with_the_session_that_opened_them_in_every_process(
    database_url: str, tmp_path: Path, locked: Api
) -> None:
    video = await story.planned(locked.database)
    paths = (f"/api/events/progress?video_ids={video.video_id}", "/api/events/workers")
    secret: dict[str, Any] = {"X-Admin-Secret": SECRET.encode()}  # httpx takes bytes, and no other letters
    await story.register(locked.database)
    async with serving(database_url, tmp_path / "b", admin_secret=SECRET) as other, AsyncExitStack() as stack:
        jar: dict[str, dict[str, str]] = {}
        for who in ("ann", "ben"):
            cookie = cookie_of(await locked.http.post("/api/session", json={"secret": SECRET}))
            jar[who] = {"Cookie": f"{cookie.key}={cookie.value}"}
        # What was renewed meanwhile is the same session.
        name = jar["ann"]["Cookie"].partition("=")[2].partition(".")[0]
        renewed = SignedIn(name, int(time.time()) + LASTS_S).cookie(Keys(SECRET))

        async def opened(headers: dict[str, Any]) -> list[Any]:
            found = [
                await stack.enter_async_context(following(api.http, path, **headers))
                for api in (locked, other)
                for path in paths
            ]
            for reader in found:
                await reader.next()
            return found

        hers, his, by_secret = await opened(jar["ann"]), await opened(jar["ben"]), await opened(secret)
        locked.http.cookies.clear()
        out = {"Cookie": f"vlog_session={renewed}", "Origin": locked.url}
        assert (await locked.http.delete("/api/session", headers=out)).status_code == 200
        for reader in hers:
            async with asyncio.timeout(20):  # a ping comes after thirty
                with pytest.raises(StopAsyncIteration):
                    await reader.next()
        await story.register(locked.database, story.OTHER)
        for reader in (his[1], his[3], by_secret[1], by_secret[3]):
            await reader.until("worker_status", worker_id=story.OTHER.worker_id)
        assert says(await other.http.get(paths[1], headers=jar["ann"])) == (401, "ADMIN_SECRET_REQUIRED")


async def test_a_stream_ends_when_the_time_of_its_session_is_over(locked: Api) -> None:
    await story.register(locked.database)
    soon = SignedIn("0" * 16, int(time.time()) + 2)
    held = {"Cookie": f"vlog_session={soon.cookie(Keys(SECRET))}"}
    async with following(locked.http, "/api/events/workers", **held) as reader:
        assert (await reader.next()).name == "worker_status"
        async with asyncio.timeout(20):
            with pytest.raises(StopAsyncIteration):
                await reader.next()


async def test_a_change_by_cookie_must_come_from_our_own_page(locked: Api) -> None:
    http = locked.http
    await http.post("/api/session", json={"secret": SECRET})
    for forged in (
        {},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://[::1"},
        {"Origin": "http://127.0.0.1:1"},  # the same site, another port
        {"Sec-Fetch-Site": "cross-site", "Origin": locked.url},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
    ):
        for method, path in (("PUT", "/api/videos"), ("POST", "/api/videos/1/cancel"), ("DELETE", "/api/videos/1")):
            assert says(await http.request(method, path, headers=forged)) == (403, "ORIGIN_FORBIDDEN"), forged
    assert locked.files() == {}
    for own in ({"Origin": locked.url}, {"Sec-Fetch-Site": "same-origin", "Origin": "https://behind.a.proxy"}):
        assert (await http.put("/api/videos", content=b"film", headers=own)).status_code == 201
    for site in ({"Origin": "https://evil.example"}, {"Origin": "null"}):
        sign_in = await http.post("/api/session", json={"secret": SECRET}, headers=site)
        assert says(sign_in) == (403, "ORIGIN_FORBIDDEN")
        assert says(await http.delete("/api/session", headers=site)) == (403, "ORIGIN_FORBIDDEN")
    # The header is proof enough: no page of another site can know it.
    by_header = {b"X-Admin-Secret": SECRET.encode()}
    assert (await http.put("/api/videos", content=b"film", headers=by_header)).status_code == 201


async def test_what_is_no_cookie_of_ours_opens_nothing(locked: Api) -> None:
    soon = int(time.time()) + 60
    name, keys = "0123456789abcdef", Keys(SECRET)
    good = SignedIn(name, soon).cookie(keys)
    held: dict[Any, Any] = {"Cookie": f"vlog_session={good}"}
    assert (await locked.http.get("/api/videos", headers=held)).status_code == 200
    wrong = (
        SignedIn(name, soon - 120).cookie(keys),
        SignedIn(name, soon).cookie(Keys("x")),
        f"{name}.{keys.sign('link', name, soon)}",
        f"{'1' * 16}.{good.partition('.')[2]}",
        good.partition(".")[2],
        f"{name.upper()}.{keys.sign('session', name.upper(), soon)}",
        f".{keys.sign('session', '', soon)}",
    )
    for value in (*wrong, "", "x", "a-b", "0-" + "A" * 43, "é", "\x00", '"', "f" * 5000):
        headers: dict[Any, Any] = {b"Cookie": f"vlog_session={value}".encode("latin-1", "ignore").replace(b"\0", b"")}
        assert says(await locked.http.get("/api/videos", headers=headers)) == (401, "ADMIN_SECRET_REQUIRED"), value
        assert (await locked.http.get("/api/session", headers=headers)).json()["signed_in"] is False


async def test_a_cookie_is_renewed_when_half_of_its_time_is_over(locked: Api) -> None:
    def held(lasts_s: float) -> dict[str, str]:
        return {"Cookie": f"vlog_session={SignedIn('0' * 16, int(time.time() + lasts_s)).cookie(Keys(SECRET))}"}

    fresh = await locked.http.get("/api/session", headers=held(LASTS_S * 0.9))
    assert fresh.json()["signed_in"] is True and "set-cookie" not in fresh.headers
    renewed = await locked.http.get("/api/session", headers=held(LASTS_S * 0.4))
    assert int(cookie_of(renewed)["max-age"]) == LASTS_S and cookie_of(renewed).value.startswith("0" * 16)


async def test_behind_https_the_cookie_is_bound_to_its_host(locked: Api) -> None:
    tls = {"X-Forwarded-Proto": "https"}  # believed of a proxy on this machine only
    signed = await locked.http.post("/api/session", json={"secret": SECRET}, headers=tls)
    cookie = cookie_of(signed)
    assert cookie.key == "__Host-vlog_session" and cookie["secure"] and cookie["path"] == "/" and not cookie["domain"]
    held = {"Cookie": f"{cookie.key}={cookie.value}"}
    assert (await locked.http.get("/api/videos", headers=tls | held)).status_code == 200
    assert (await locked.http.get("/api/videos", headers=held)).status_code == 401


async def test_guessing_is_slowed_down_by_header_and_by_form_and_holds_up_nobody_who_is_in(locked: Api) -> None:
    await locked.http.post("/api/session", json={"secret": SECRET})
    async with httpx.AsyncClient(base_url=locked.url, trust_env=False) as stranger:
        for number in range(BURST):
            if number % 2:
                answer = await stranger.post("/api/session", json={"secret": f"guess {number}"})
            else:
                answer = await stranger.get("/api/videos", headers={"X-Admin-Secret": f"guess {number}"})
            assert says(answer) == (403, "ADMIN_SECRET_WRONG")
        right = {b"X-Admin-Secret": SECRET.encode()}
        for answer in (
            await stranger.post("/api/session", json={"secret": SECRET}),
            await stranger.get("/api/videos", headers=right),
        ):
            assert says(answer) == (429, "TOO_MANY_GUESSES") and 1 <= int(answer.headers["retry-after"]) <= 6
    assert (await locked.http.get("/api/videos")).status_code == 200


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"[]", b"{", b'{"secret": 5}', b'{"secret": null}', b'{"secret": "a", "b": 1}']
)
async def test_what_is_no_sign_in_is_refused_without_an_echo(locked: Api, body: bytes) -> None:
    assert says(await locked.http.post("/api/session", content=body)) == (422, "INVALID_REQUEST")
    large = await locked.http.post("/api/session", content=b'{"secret": "' + b"x" * 70_000)
    assert says(large) == (413, "REQUEST_TOO_LARGE")


async def test_a_cookie_registers_workers_unless_that_has_a_secret_of_its_own(
    database_url: str, tmp_path: Path, locked: Api
) -> None:
    async def register(api: Api) -> int:
        await api.http.post("/api/session", json={"secret": SECRET})
        own = {"Origin": api.url}
        return (await api.http.post("/api/worker/register", json={"worker_name": "a"}, headers=own)).status_code

    assert await register(locked) == 201
    apart: dict[str, Any] = {"admin_secret": SECRET, "worker_admin_secret": "other"}
    async with serving(database_url, tmp_path / "b", **apart) as api:
        assert await register(api) == 401


async def test_without_a_secret_everybody_here_is_signed_in(lonely_api: Api) -> None:
    everybody = {"signed_in": True, "secret_required": False, "expires_at": None}
    assert (await lonely_api.http.get("/api/session")).json() == everybody
    for answer in (
        await lonely_api.http.post("/api/session", json={"secret": "x"}),
        await lonely_api.http.delete("/api/session"),
    ):
        assert answer.status_code == 200 and answer.json() == everybody


async def test_pages_have_nothing_inline_and_go_in_nobody_s_frame(lonely_api: Api) -> None:
    for path in ("/", "/docs"):
        page = await lonely_api.http.get(path)
        policy = page.headers["content-security-policy"]
        assert "unsafe" not in policy and policy.startswith("default-src 'none'")
        assert "frame-ancestors 'none'" in policy and "base-uri 'none'" in policy
        assert page.headers["x-frame-options"] == "DENY" and page.headers["x-content-type-options"] == "nosniff"
        assert "<style" not in page.text and " style=" not in page.text and " onclick=" not in page.text
    style = await lonely_api.http.get("/docs.css")
    assert style.status_code == 200 and style.headers["content-type"].startswith("text/css")
