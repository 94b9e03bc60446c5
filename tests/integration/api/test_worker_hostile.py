"""What machines and strangers may send to the registry: every answer is one of ours, and nothing bad is kept."""

import asyncio
import json
import string
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from api.worker_fields import ABOUT_BYTES
from tests.integration.api.running import Api
from tests.integration.api.workers import refused, register


async def ask(api: Api, body: bytes | str, **headers: str) -> tuple[int, str]:
    answer = await api.http.post("/api/worker/register", content=body, headers=headers)
    return answer.status_code, answer.json().get("error", "")


def about(size: int) -> str:
    """Give JSON that has so many bytes in the database."""
    return '{"capabilities": {"x": "' + "y" * (size - len('{"x": ""}')) + '"}}'


async def test_ten_kilobytes_of_capabilities_and_of_metadata_and_not_one_more(lonely_api: Api) -> None:
    assert await ask(lonely_api, about(ABOUT_BYTES)) == (201, "")
    assert await ask(lonely_api, about(ABOUT_BYTES + 1)) == (400, "CAPABILITIES_TOO_LARGE")
    assert await ask(lonely_api, about(ABOUT_BYTES + 1).replace("capabilities", "metadata")) == (
        400,
        "METADATA_TOO_LARGE",
    )
    # Letters that take more bytes than characters, and numbers that the database writes out in full.
    assert await ask(lonely_api, json.dumps({"metadata": {"x": "ü" * 6000}})) == (400, "METADATA_TOO_LARGE")
    numbers = json.dumps({"capabilities": {"x": [1e300] * 100}})
    assert len(numbers) < 1000 and await ask(lonely_api, numbers) == (400, "CAPABILITIES_TOO_LARGE")
    few = json.dumps({"capabilities": {"x": [1e300, 5e-324, 1.5, -0.0, 10**18]}})
    assert await ask(lonely_api, few) == (201, "")
    studio = await register(lonely_api)
    assert refused(await studio.beat(capabilities={"x": "y" * ABOUT_BYTES})) == (400, "CAPABILITIES_TOO_LARGE")


async def test_what_cannot_be_kept_is_refused_by_name(lonely_api: Api) -> None:
    deep: Any = 1
    for _ in range(9):
        deep = {"x": deep}
    refusals: list[tuple[bytes | str, int, str]] = [
        ('{"capabilities": {"x": NaN}}', 400, "CAPABILITIES_INVALID"),
        ('{"capabilities": {"x": -Infinity}}', 400, "CAPABILITIES_INVALID"),
        ('{"capabilities": {"x": 1e999}}', 400, "CAPABILITIES_INVALID"),
        ('{"capabilities": {"x": 9223372036854775808}}', 400, "CAPABILITIES_INVALID"),
        ('{"capabilities": {"x": ' + "9" * 4000 + "}}", 400, "CAPABILITIES_INVALID"),
        ('{"capabilities": {"x": ' + "9" * 5000 + "}}", 422, "INVALID_REQUEST"),
        ('{"capabilities": {"x": "\\u0000"}}', 400, "CAPABILITIES_INVALID"),
        ('{"metadata": {"\\u0000": 1}}', 400, "METADATA_INVALID"),
        (json.dumps({"metadata": deep}), 400, "METADATA_INVALID"),
        ('{"worker_name": "a\\u0000b"}', 400, "WORKER_NAME_INVALID"),
        ('{"worker_name": "a\\nb"}', 400, "WORKER_NAME_INVALID"),
        ('{"worker_name": "\\u202egnp.exe"}', 400, "WORKER_NAME_INVALID"),
        (json.dumps({"worker_name": "x" * 101}), 400, "WORKER_NAME_INVALID"),
        (json.dumps({"version": "x" * 101}), 400, "WORKER_VERSION_INVALID"),
        ('{"metadata": {"x": "\\ud800"}}', 422, "INVALID_REQUEST"),
        ('{"worker_name": 7}', 422, "INVALID_REQUEST"),
        ('{"worker_name": ["a"]}', 422, "INVALID_REQUEST"),
        ('{"worker_type": "boss"}', 422, "INVALID_REQUEST"),
        ('{"capabilities": []}', 422, "INVALID_REQUEST"),
        ('{"capabilities": null}', 422, "INVALID_REQUEST"),
        ('{"status": "busy"}', 422, "INVALID_REQUEST"),
        ('{"worker_id": "mine", "api_key": "mine"}', 422, "INVALID_REQUEST"),
        ("[]", 422, "INVALID_REQUEST"),
        ("{", 422, "INVALID_REQUEST"),
        ("[" * 60_000, 422, "INVALID_REQUEST"),
        ('{"capabilities": ' + '{"x":' * 5000 + "1" + "}" * 5001, 422, "INVALID_REQUEST"),
        ("nonsense", 422, "INVALID_REQUEST"),
        (b"\xff\xfe\x00", 422, "INVALID_REQUEST"),
        ("x" * 70_000, 413, "REQUEST_TOO_LARGE"),
    ]
    for body, status, code in refusals:
        assert await ask(lonely_api, body) == (status, code), body[:60]
    assert await lonely_api.rows("SELECT id FROM workers") == []
    for name in ("  ", "", None):
        assert await ask(lonely_api, json.dumps({"worker_name": name})) == (201, "")
    for name in ("Robert'); DROP TABLE workers;--", "工作室 👩‍💻", "%s {0} ${x}", "<script>alert(1)</script>"):
        studio = await register(lonely_api, name)
        assert (await studio.row())["worker_name"] == name
        assert (await studio.command("GET")).json()["worker_name"] == name
        found = await lonely_api.http.get("/api/workers", params={"name": name})
        assert [worker["worker_id"] for worker in found.json()["items"]] == [studio.worker_id]


async def test_a_beat_says_only_what_a_worker_may_say(lonely_api: Api) -> None:
    studio, attic = await register(lonely_api, "studio"), await register(lonely_api, "attic")
    for status in ("disabled", "IDLE", " ", "x" * 1000):
        assert refused(await studio.beat(status)) == (422, "INVALID_REQUEST")
    # Whose beat it is says the key, and nothing else.
    assert refused(await studio.beat("busy", worker_id=attic.worker_id)) == (422, "INVALID_REQUEST")
    smuggled = {"X-Worker-API-Key": studio.key, "X-Worker-ID": attic.worker_id}
    answer = await lonely_api.http.post("/api/worker/heartbeat", json={"status": "busy"}, headers=smuggled)
    assert answer.json()["worker_id"] == studio.worker_id
    assert (await studio.status(), await attic.status()) == ("busy", "active")


async def test_headers_that_try_to_be_clever_open_nothing(lonely_api: Api) -> None:
    studio, attic = await register(lonely_api, "studio"), await register(lonely_api, "attic")

    async def said(*lines: str) -> bytes:
        head = "\r\n".join(["POST /api/worker/heartbeat HTTP/1.1", "Host: localhost", "Content-Length: 0", *lines])
        answer = await lonely_api.raw(f"{head}\r\nConnection: close\r\n\r\n".encode("latin-1"))
        return answer.split(b"\r\n", 1)[0].split(b" ", 2)[1] + b" " + answer.rsplit(b"\r\n\r\n", 1)[1]

    name = "X-Worker-API-Key"
    for lines in (
        (f"{name}: {studio.key}", f"{name}: {attic.key}"),
        (f"{name}: {studio.key}, {attic.key}",),
        (f"{name}: {studio.key}\x00",),
        (f"{name}: Bearer {studio.key}",),
        (f"{name}: {'%20' + studio.key}",),
        (f"{name}: \xfc{studio.key[1:]}",),
        (f"Authorization: Bearer {studio.key}",),
        (f"Cookie: {name}={studio.key}",),
    ):
        answer = await said(*lines)
        assert answer[:3] in (b"400", b"401"), (lines, answer)
    assert await studio.status() == await attic.status() == "active"
    assert (await said(f"{name.lower()}:   {studio.key}  "))[:3] == b"200"  # the spelling of a header is free


async def test_a_stranger_s_body_is_not_read_into_memory(lonely_api: Api) -> None:
    """Without a key nothing of it is looked at; with one, no more than a beat may have."""
    studio = await register(lonely_api)
    read = 0

    async def endless() -> Any:
        nonlocal read
        while read < 64 << 20:
            read += 1 << 20
            yield b"x" * (1 << 20)

    answer = await lonely_api.http.post(
        "/api/worker/heartbeat", content=endless(), headers={"X-Worker-API-Key": studio.key}
    )
    assert refused(answer) == (413, "REQUEST_TOO_LARGE")
    nobody = await lonely_api.http.post("/api/worker/heartbeat", content=b"x" * 100_000)
    assert refused(nobody) == (401, "WORKER_KEY_REQUIRED")
    # FastAPI reads what it parses before it asks who sends it.
    for path in ("/api/jobs/1/priority", "/api/videos/1/retranscode"):
        declared = await lonely_api.http.post(
            path, content=b" " * (2 << 20), headers={"Content-Type": "application/json"}
        )
        assert refused(declared) == (413, "REQUEST_TOO_LARGE")
        read = 0
        streamed = await lonely_api.http.post(path, content=endless(), headers={"Content-Type": "application/json"})
        assert refused(streamed) == (400, "BAD_REQUEST")


async def test_a_hundred_guesses_cost_little_and_the_worker_still_beats(lonely_api: Api) -> None:
    studio = await register(lonely_api)
    path, guesses = "/api/worker/heartbeat", [studio.key[:8] + f"{n:035d}" for n in range(100)]

    async def guess(key: str) -> int:
        # On a starved machine Postgres may answer one of fifty too late: that opens nothing either, and is asked again.
        while (answer := await lonely_api.http.post(path, headers={"X-Worker-API-Key": key})).status_code == 503:
            await asyncio.sleep(1)
        return answer.status_code

    for start in range(0, 100, 50):
        beat = asyncio.create_task(studio.beat())
        assert set(await asyncio.gather(*(guess(key) for key in guesses[start : start + 50]))) == {401}
        assert (await beat).status_code == 200


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inside: st.lists(inside, max_size=4) | st.dictionaries(st.text(max_size=5), inside, max_size=4),
    max_leaves=12,
)
FIELDS = st.sampled_from(["worker_name", "worker_type", "capabilities", "metadata", "version", "status", "expires"])
BODIES = st.dictionaries(FIELDS, JSON | st.sampled_from(["local", "remote", "idle", "busy"]), max_size=5)
HEADERS = st.text(string.printable.translate({10: None, 11: None, 12: None, 13: None, 9: None}), max_size=60)


async def test_whatever_is_sent_is_answered_in_one_of_our_ways(lonely_api: Api) -> None:
    """The bodies are drawn first: a property test has no event loop of its own."""
    studio = await register(lonely_api)
    drawn: list[tuple[dict[str, Any], str]] = []

    @settings(max_examples=25, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(BODIES, HEADERS)
    def draw(body: dict[str, Any], header: str) -> None:
        drawn.append((body, header.strip()))

    draw()
    assert len(drawn) >= 20
    kept = 0
    for body, header in drawn:
        sent = json.dumps(body).encode()
        registered = await lonely_api.http.post("/api/worker/register", content=sent, headers={"X-Actor": header})
        beaten = await lonely_api.http.post(
            "/api/worker/heartbeat", content=sent, headers={"X-Worker-API-Key": studio.key}
        )
        guessed = await lonely_api.http.post("/api/worker/heartbeat", headers={"X-Worker-API-Key": header})
        assert registered.status_code in (201, 400, 422), (body, registered.text)
        assert beaten.status_code in (200, 400, 422), (body, beaten.text)
        assert guessed.status_code == 401
        kept += registered.status_code == 201
    [count] = await lonely_api.rows("SELECT count(*) AS n FROM workers")
    assert count["n"] == kept + 1
    listed = await lonely_api.http.get("/api/workers", params={"limit": 200})
    assert listed.status_code == 200 and len(listed.json()["items"]) == kept + 1
