"""/api/webhooks and /api/events over HTTP, with a receiver that is really told."""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from temporalio.worker import Worker

from activities.webhooks import WebhookSteps, signature
from contracts.queues import TaskQueue
from runtime.joining import Joined
from runtime.temporal import connect
from tests.integration.api.running import Api, TemporalServer, serving
from tests.support.eventually import eventually
from tests.support.receiving import Receiver, receiving
from workflows import delivering
from workflows.deliver_webhook import DeliverWebhook

SITE = {"name": "site", "url": "https://site.example/hooks", "events": ["video.ready"]}


async def made(api: Api, **fields: Any) -> dict[str, Any]:
    answer = await api.http.post("/api/webhooks", json=SITE | fields)
    assert answer.status_code == 201, answer.text
    hook: dict[str, Any] = answer.json()
    return hook


@pytest.fixture
def own_temporal() -> Iterator[TemporalServer]:
    """A Temporal of its own: in the shared one workflows are left waiting, and our worker would take them up."""
    server = TemporalServer()
    server.start()
    yield server
    server.stop()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as made:
        yield made


async def test_an_upload_and_a_ping_reach_the_receiver_through_the_api_alone(
    database_url: str,
    tmp_path: Path,
    own_temporal: TemporalServer,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The whole way: settings, registration, the API's own loop, Temporal, the worker's queues, HTTP."""
    monkeypatch.setattr(delivering, "START_S", 60.0)
    alerts: dict[str, Any] = {
        "alert_webhook_url": receiver.url.replace("/hooks/", "/alerts/"),
        "alert_events": ["video.uploaded"],
    }
    address = own_temporal.address
    async with serving(database_url, tmp_path / "storage", temporal_address=address, **alerts) as api:
        client = await connect(Joined("", address, "default", ""))
        steps = WebhookSteps(api.database)
        async with (
            Worker(
                client,
                task_queue=TaskQueue.ORCHESTRATE,
                workflows=[DeliverWebhook],
                activities=[steps.record_attempt],
            ),
            Worker(client, task_queue=TaskQueue.IO, activities=[steps.post_delivery]),
        ):
            hook = await made(api, url=receiver.url, events=["*"])

            async def alert_hook_is_there() -> bool:
                return len((await api.http.get("/api/webhooks")).json()) == 2

            await eventually(alert_hook_is_there, within=10)
            await api.http.put("/api/videos", params={"filename": "clip.mp4"}, content=b"not a video")
            ping = await api.http.post(f"/api/webhooks/{hook['webhook_id']}/test")
            assert (ping.status_code, ping.json()["event"], ping.json()["status"]) == (202, "ping", "pending")
            place = f"/api/webhooks/{hook['webhook_id']}/deliveries/{ping.json()['delivery_id']}"

            async def all_there() -> bool:
                return len(receiver.got) == 3 and (await api.http.get(place)).json()["status"] == "delivered"

            await eventually(all_there, within=30)
            got = {(one.body["event"], "text" in one.body): one for one in receiver.got}
            assert got.keys() == {("video.uploaded", False), ("video.uploaded", True), ("ping", False)}
            told = got["ping", False]
            assert told.headers["x-vlog-signature"] == signature(
                hook["secret"], told.headers["x-vlog-timestamp"], told.raw
            )
            assert "x-vlog-signature" not in got["video.uploaded", True].headers  # the alert hook has no secret
            detail = (await api.http.get(place)).json()
            assert detail["request_body"] == told.raw.decode() and detail["attempts"][0]["status"] == 200
            again = await api.http.post(f"{place}/retry")
            assert again.status_code == 202, again.text

            async def once_more() -> bool:
                return len(receiver.got) == 4

            await eventually(once_more, within=30)


async def test_a_secret_is_shown_once_and_headers_never(lonely_api: Api) -> None:
    hook = await made(lonely_api, headers={"Authorization": "Bearer hush"})
    assert len(hook["secret"]) == 64
    path = f"/api/webhooks/{hook['webhook_id']}"
    for answer in (await lonely_api.http.get(path), await lonely_api.http.get("/api/webhooks")):
        assert hook["secret"] not in answer.text and "hush" not in answer.text
        assert "Authorization" in answer.text
    changed = await lonely_api.http.patch(path, json={"secret": "b" * 32, "active": False})
    assert (changed.status_code, changed.json()["active"]) == (200, False)
    assert "b" * 32 not in changed.text
    [row] = await lonely_api.rows("SELECT secret, headers FROM webhooks")
    assert row["secret"] == "b" * 32 and row["headers"] == {"Authorization": "Bearer hush"}
    refused = await lonely_api.http.post(f"{path}/test")
    assert (refused.status_code, refused.json()["error"]) == (409, "WEBHOOK_INACTIVE")
    assert (await lonely_api.http.delete(path)).status_code == 204
    assert (await lonely_api.http.delete(path)).json()["error"] == "WEBHOOK_NOT_FOUND"
    audit = (await lonely_api.http.get("/api/events", params={"event": "webhook."})).json()["items"]
    assert [event["event"] for event in audit] == ["webhook.deleted", "webhook.changed", "webhook.created"]
    assert "site.example" not in str(audit) and "bbbb" not in str(audit)


@pytest.mark.parametrize(
    "fields",
    [
        {"url": "ftp://site.example/"},
        {"url": "file:///etc/passwd"},
        {"url": "https://user:password@site.example/"},
        {"url": "https://"},
        {"url": "https://site.example/\r\nHost: other"},
        {"url": "https://site.example/" + "x" * 500},
        {"url": "http://[::1"},
        {"url": "http://site.example:99999/"},
        {"events": []},
        {"events": ["video.sold"]},
        {"name": ""},
        {"name": "a\x00b"},
        {"name": "\ud800"},
        {"secret": "short"},
        {"headers": {"Host": "elsewhere"}},
        {"headers": {"X-VLog-Signature": "forged"}},
        {"headers": {"X": "a\r\nY: b"}},
        {"headers": {"Bad Name": "x"}},
        {"headers": {"A": "1", "a": "2"}},
        {"timeout_seconds": 61},
        {"timeout_seconds": 0},
        {"rate_limit_seconds": -1},
        {"builtin": True},
    ],
)
async def test_what_makes_no_sense_is_refused(lonely_api: Api, fields: dict[str, Any]) -> None:
    body = json.dumps(SITE | fields)
    answer = await lonely_api.http.post("/api/webhooks", content=body, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["error"]) == (422, "INVALID_REQUEST"), answer.text
    assert await lonely_api.rows("SELECT id FROM webhooks") == []


async def test_the_alert_hook_is_shown_masked_and_cannot_be_changed_here(database_url: str, tmp_path: Path) -> None:
    url = "https://hooks.slack.example/services/T0/B0/password"
    async with serving(database_url, tmp_path / "storage", alert_webhook_url=url, alert_webhook_timeout=3) as api:

        async def is_there() -> bool:
            return len((await api.http.get("/api/webhooks")).json()) == 1

        await eventually(is_there, within=10)
        [hook] = (await api.http.get("/api/webhooks")).json()
        assert hook["builtin"] and "password" not in str(hook) and hook["timeout_seconds"] == 3
        assert "worker_startup" not in hook["events"] and "job_failed_pattern" in hook["events"]
        path = f"/api/webhooks/{hook['webhook_id']}"
        for answer in (await api.http.patch(path, json={"name": "mine"}), await api.http.delete(path)):
            assert (answer.status_code, answer.json()["error"]) == (409, "WEBHOOK_BUILTIN")
    async with serving(database_url, tmp_path / "storage") as api:  # the setting is gone

        async def is_off() -> bool:
            return [hook["active"] for hook in (await api.http.get("/api/webhooks")).json()] == [False]

        await eventually(is_off, within=10)


async def test_deliveries_are_paged_and_found_by_status(lonely_api: Api) -> None:
    hook = await made(lonely_api)
    path = f"/api/webhooks/{hook['webhook_id']}"
    for _ in range(3):
        await lonely_api.http.post(f"{path}/test")
    first = (await lonely_api.http.get(f"{path}/deliveries", params={"limit": 2})).json()
    rest = (await lonely_api.http.get(f"{path}/deliveries", params={"cursor": first["next_cursor"]})).json()
    assert (len(first["items"]), len(rest["items"]), rest["next_cursor"]) == (2, 1, None)
    none = (await lonely_api.http.get(f"{path}/deliveries", params={"status": "delivered"})).json()
    assert none["items"] == []
    under_way = await lonely_api.http.post(f"{path}/deliveries/{first['items'][0]['delivery_id']}/retry")
    assert (under_way.status_code, under_way.json()["error"]) == (409, "DELIVERY_UNDER_WAY")
    unknown = await lonely_api.http.get(f"{path}/deliveries/00000000-0000-0000-0000-000000000000")
    assert (unknown.status_code, unknown.json()["error"]) == (404, "DELIVERY_NOT_FOUND")
    assert (await lonely_api.http.get(f"{path}/deliveries/12")).status_code == 422
    assert (await lonely_api.http.get(f"{path}/deliveries", params={"cursor": "?"})).status_code == 400


async def test_the_event_log_is_read_newest_first_with_filters(lonely_api: Api) -> None:
    await lonely_api.http.put("/api/videos", params={"filename": "clip.mp4"}, content=b"x")
    [video] = (await lonely_api.http.get("/api/videos")).json()["items"]
    await lonely_api.http.delete(f"/api/videos/{video['video_id']}", headers={"X-Actor": "ana"})

    async def names(**params: Any) -> list[str]:
        answer = await lonely_api.http.get("/api/events", params=params)
        assert answer.status_code == 200, answer.text
        return [event["event"] for event in answer.json()["items"]]

    everything = await names()
    assert everything[-1] == "job.created" and "video.deleted" in everything
    assert await names(jobs="false") == ["video.deleted"]
    assert await names(actor="ana", event="video.") == ["video.deleted"]
    assert await names(event="video.del") == []
    assert await names(level="error") == []
    assert await names(since="2099-01-01T00:00:00Z") == [] == await names(until="2001-01-01T00:00:00Z")
    page = (await lonely_api.http.get("/api/events", params={"limit": 1})).json()
    assert len(page["items"]) == 1 and page["next_cursor"]
    for bad in ({"cursor": "?"}, {"level": "loud"}, {"since": "yesterday"}, {"since": "2026-01-01T00:00:00"}):
        assert (await lonely_api.http.get("/api/events", params=bad)).status_code in (400, 422)


async def test_all_of_it_needs_the_secret(database_url: str, tmp_path: Path) -> None:
    async with serving(database_url, tmp_path / "storage", admin_secret="hush") as api:
        for method, path in (("GET", "/api/webhooks"), ("POST", "/api/webhooks"), ("GET", "/api/events")):
            answer = await api.http.request(method, path)
            assert (answer.status_code, answer.json()["error"]) == (401, "ADMIN_SECRET_REQUIRED")
        assert (await api.http.get("/api/webhooks", headers={"X-Admin-Secret": "hush"})).status_code == 200
