"""What happened reaches whoever asked to hear of it: once if all goes well, and in the end if it does not."""

import asyncio
import hashlib
import hmac
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy import text
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.worker import Worker

from activities import webhooks
from activities.chores.deliveries import DeliveriesChore
from activities.failures import FailureInterceptor
from activities.webhooks import WebhookSteps
from contracts.end_steps import FailJob, Finalize
from contracts.errors import CANCELLED, RETRIES_EXHAUSTED
from contracts.housekeeping import KeepHouse
from contracts.queues import TaskQueue
from contracts.webhooks import USUAL_ALERTS, PostDelivery
from mirror import writes
from mirror.deliveries import DeliveryOutbox, release
from mirror.sessions import Database
from mirror.writes import CreatedVideo
from mirror.writes_hooks import add_webhook, delete_webhook, keep_alert_hook, redeliver
from runtime.joining import Joined
from runtime.temporal import connect
from tests.integration.api.running import NOWHERE
from tests.integration.mirror.story import register, row, rows_of, upload
from tests.support.eventually import eventually
from tests.support.receiving import Receiver, receiving
from workflows import delivering
from workflows.deliver_webhook import DeliverWebhook
from workflows.delivering import DeliveryStarter

SECRET = "a secret that both know"
QUICK = {"first_wait_s": 0.2, "longest_wait_s": 0.4}


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivering, "START_S", 60.0)  # on a busy machine Temporal may take long; here nobody waits


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as made:
        yield made


@pytest.fixture
async def outbox(client: Client, database: Database) -> AsyncIterator[DeliveryOutbox]:
    """The way from a row to the receiver, with workers that carry it."""
    steps = WebhookSteps(database)
    common: dict[str, Any] = {"interceptors": [FailureInterceptor()]}
    async with (
        Worker(
            client,
            task_queue=TaskQueue.ORCHESTRATE,
            workflows=[DeliverWebhook],
            activities=[steps.record_attempt],
            **common,
        ),
        Worker(client, task_queue=TaskQueue.IO, activities=[steps.post_delivery], **common),
    ):
        yield DeliveryOutbox(database, DeliveryStarter(client, **QUICK))


async def hook(database: Database, url: str, *events: str, **values: Any) -> int:
    async with database.write() as s:
        return await add_webhook(s, name="test", url=url, events=list(events or ("*",)), **values)


async def fail(database: Database, video: CreatedVideo, code: str = "SOURCE_UNREADABLE", why: str = "Broken.") -> None:
    end = FailJob(job_id=video.job_id, video_id=video.video_id, code=code, sentence=why)
    async with database.write() as s:
        await writes.fail_job(s, end)


async def deliveries(database: Database) -> list[dict[str, Any]]:
    return await rows_of(database, "SELECT * FROM webhook_deliveries ORDER BY id")


async def statuses(database: Database) -> list[str]:
    return [each["status"] for each in await deliveries(database)]


async def until(database: Database, *wanted: str) -> None:
    async def is_so() -> bool:
        return await statuses(database) == list(wanted)

    await eventually(is_so, within=20)


async def test_an_event_is_delivered_once_and_signed(
    database: Database, outbox: DeliveryOutbox, receiver: Receiver
) -> None:
    await hook(database, receiver.url, secret=SECRET, headers={"Authorization": "Bearer x", "X-VLog-Event": "mine"})
    video = await upload(database, title="Föhr & <b>friends</b>", owner="ana")
    assert await outbox.start_waiting() == 1
    assert await outbox.start_waiting() == 0
    await until(database, "delivered")
    [got] = receiver.got
    assert got.body["event"] == got.headers["x-vlog-event"] == "video.uploaded"
    about = got.body["data"]["video"]
    assert (about["video_id"], about["title"], about["owner"]) == (video.video_id, "Föhr & <b>friends</b>", "ana")
    [told] = await deliveries(database)
    assert got.headers["x-vlog-delivery-id"] == got.body["delivery_id"] == str(told["uid"])
    assert got.headers["authorization"] == "Bearer x"
    timestamp = got.headers["x-vlog-timestamp"]
    assert abs(time.time() - int(timestamp)) < 120
    expected = hmac.new(SECRET.encode(), f"{timestamp}.".encode() + got.raw, hashlib.sha256).hexdigest()
    assert got.headers["x-vlog-signature"] == f"sha256={expected}"
    assert (told["response_status"], told["response_body"], told["error_message"]) == (200, "ok", None)
    counts = await row(database, "SELECT total_deliveries, successful_deliveries, failed_deliveries FROM webhooks")
    assert tuple(counts.values()) == (1, 1, 0)


async def test_a_receiver_that_fails_is_tried_again_and_every_attempt_is_recorded(
    database: Database, outbox: DeliveryOutbox, receiver: Receiver
) -> None:
    receiver.will_say(500, body=b"x" * 10_000)
    receiver.will_say(302, headers="location: http://127.0.0.1:1/elsewhere\r\n")
    receiver.will_say(503, headers="retry-after: 1\r\n")
    await hook(database, receiver.url)
    await upload(database)
    await outbox.start_waiting()

    async def first_is_noted() -> bool:
        [told] = await deliveries(database)
        return len(told["attempts"]) > 0

    await eventually(first_is_noted, within=20, every=0.02)
    await until(database, "delivered")
    [told] = await deliveries(database)
    assert [entry["status"] for entry in told["attempts"]] == [500, 302, 503, 200]
    assert told["attempts"][1]["error"] == "The receiver answered 302. Redirects are not followed."
    assert (told["attempt_number"], told["next_retry_at"]) == (4, None)
    assert (
        len({got.raw for got in receiver.got}) == len({got.headers["x-vlog-delivery-id"] for got in receiver.got}) == 1
    )
    times = [entry["at"] for entry in told["attempts"]]
    assert times == sorted(times)


async def test_a_long_answer_is_cut_and_a_410_ends_it(
    database: Database, outbox: DeliveryOutbox, receiver: Receiver
) -> None:
    receiver.will_say(410, body=b"\x00\xff" + b"x" * 100_000)
    await hook(database, receiver.url)
    await upload(database)
    await outbox.start_waiting()
    await until(database, "failed_permanent")
    [told] = await deliveries(database)
    assert told["response_status"] == 410 and 4000 < len(told["response_body"]) <= 4096
    assert "410" in told["error_message"] and len(receiver.got) == 1
    counts = await row(database, "SELECT total_deliveries, successful_deliveries, failed_deliveries FROM webhooks")
    assert tuple(counts.values()) == (1, 0, 1)


async def test_a_receiver_that_hangs_costs_its_timeout_and_gets_it_later(
    database: Database, outbox: DeliveryOutbox, receiver: Receiver
) -> None:
    receiver.hang = True
    await hook(database, receiver.url, timeout_seconds=0.3)
    await upload(database)
    await outbox.start_waiting()
    await until(database, "failed")
    [told] = await deliveries(database)
    assert told["error_message"] == "No answer within 0.3 s."
    assert told["next_retry_at"] is not None
    receiver.hang = False
    await until(database, "delivered")


async def test_a_receiver_that_is_down_gets_it_when_it_is_back(database: Database, outbox: DeliveryOutbox) -> None:
    async with receiving() as receiver:
        pass
    await hook(database, receiver.url)
    await upload(database)
    await outbox.start_waiting()
    await until(database, "failed")
    [told] = await deliveries(database)
    assert told["error_message"] == "The receiver could not be reached (ConnectError)."
    async with receiving(receiver):
        await until(database, "delivered")
    assert len(receiver.got) == 1


async def test_it_is_given_up_when_its_time_is_over_and_a_person_may_send_it_again(
    client: Client, database: Database, outbox: DeliveryOutbox, receiver: Receiver
) -> None:
    receiver.will_say(*[500] * 50)
    await hook(database, receiver.url)
    await upload(database)
    hasty = DeliveryOutbox(database, DeliveryStarter(client, first_wait_s=0.1, longest_wait_s=0.2, give_up_after_s=1))
    await hasty.start_waiting()
    await until(database, "failed_permanent")
    tries = len(receiver.got)
    assert tries > 1
    receiver.answers.clear()
    [told] = await deliveries(database)
    async with database.write() as s:
        assert await redeliver(s, told["id"])
        assert not await redeliver(s, told["id"])  # it is under way
    await outbox.start_waiting()
    await until(database, "delivered")
    assert len(receiver.got) == tries + 1
    assert receiver.got[-1].raw == receiver.got[0].raw
    [told] = await deliveries(database)
    assert [entry["round"] for entry in told["attempts"]] == [1] * tries + [2]


async def test_a_deleted_webhook_stops_its_deliveries(
    client: Client, database: Database, outbox: DeliveryOutbox, receiver: Receiver
) -> None:
    receiver.will_say(*[500] * 50)
    number = await hook(database, receiver.url)
    await upload(database)
    await outbox.start_waiting()
    await until(database, "failed")
    [told] = await deliveries(database)
    async with database.write() as s:
        await delete_webhook(s, number)
    handle = client.get_workflow_handle(f"webhook-{told['uid']}")

    async def is_over() -> bool:
        return (await handle.describe()).status is WorkflowExecutionStatus.COMPLETED

    await eventually(is_over, within=20)
    before = len(receiver.got)
    assert before < 50
    await upload(database)
    assert await outbox.start_waiting() == 0 and await deliveries(database) == []


async def test_of_one_alert_one_is_sent_in_five_minutes_and_the_next_counts_the_others(
    database: Database, outbox: DeliveryOutbox, receiver: Receiver
) -> None:
    async with database.write() as s:
        await keep_alert_hook(s, receiver.url, USUAL_ALERTS, rate_limit_s=300, timeout_s=10)
        await keep_alert_hook(s, receiver.url, USUAL_ALERTS, rate_limit_s=300, timeout_s=5)  # a second API
    for number in range(3):
        await fail(
            database, await upload(database, title=f"<!channel> {number}"), RETRIES_EXHAUSTED, "Three tries & no luck."
        )
    await fail(database, await upload(database))  # another alert has a clock of its own
    await outbox.start_waiting()
    await until(database, "delivered", "suppressed", "suppressed", "delivered")
    assert sorted(got.body["event"] for got in receiver.got) == ["job_failed", "job_max_retries_exceeded"]
    async with database.write() as s:
        await s.execute(text("UPDATE webhook_deliveries SET released_at = released_at - interval '301 seconds'"))
    await fail(database, await upload(database, title="<!channel>"), RETRIES_EXHAUSTED, "Three tries & no luck.")
    await outbox.start_waiting()
    await until(database, "delivered", "suppressed", "suppressed", "delivered", "delivered")
    body = receiver.got[-1].body
    assert body["suppressed"] == 2 and body["allowed_mentions"] == {"parse": []}
    told = "VLog: job_max_retries_exceeded “&lt;!channel&gt;”: Three tries &amp; no luck."
    assert body["text"] == f"{told} (2 more of these since the last one.)"
    assert body["content"].startswith("VLog: job_max_retries_exceeded “<!channel>”")
    hooks = await row(database, "SELECT timeout_seconds, active FROM webhooks")
    assert hooks == {"timeout_seconds": 5, "active": True}
    async with database.write() as s:
        await keep_alert_hook(s, None, USUAL_ALERTS, rate_limit_s=300, timeout_s=5)
    await fail(database, await upload(database))
    assert len(await deliveries(database)) == 5


async def test_with_temporal_away_nothing_is_lost_and_housekeeping_starts_it(
    client: Client, database: Database, outbox: DeliveryOutbox, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    await hook(database, receiver.url)
    await upload(database)
    monkeypatch.setattr(delivering, "START_S", 0.2)
    away = await connect(Joined("", NOWHERE, "default", ""), lazy=True)
    assert await DeliveryOutbox(database, DeliveryStarter(away)).start_waiting() == 0
    assert (await row(database, "SELECT started_at FROM webhook_deliveries"))["started_at"] is None
    monkeypatch.setattr(delivering, "START_S", 60.0)
    done = await DeliveriesChore(database, outbox).carry_deliveries(KeepHouse())
    assert done.count == 1
    await until(database, "delivered")
    assert len(receiver.got) == 1


async def test_what_temporal_forgot_is_started_again_and_what_it_ended_silently_is_given_up(
    client: Client, database: Database, outbox: DeliveryOutbox, receiver: Receiver
) -> None:
    await hook(database, receiver.url)
    await upload(database)
    await upload(database)
    long_ago = "started_at = now() - interval '1 hour'"
    async with database.write() as s:
        await s.execute(text(f"UPDATE webhook_deliveries SET {long_ago}, released_at = now(), request_body = '{{}}'"))
    first, second = await deliveries(database)
    # The second one's workflow was ended by hand.
    handle = await client.start_workflow("Nobody", id=f"webhook-{second['uid']}", task_queue="nobody")
    await handle.terminate()
    assert await outbox.start_waiting() == 0
    assert await outbox.start_overdue() == 2
    await until(database, "delivered", "failed_permanent")
    assert (await deliveries(database))[1]["error_message"] == "Its workflow ended without a word."
    assert await outbox.start_overdue() == 0
    async with database.write() as s:
        await s.execute(text("UPDATE webhook_deliveries SET created_at = now() - interval '31 days'"))
    assert (await DeliveriesChore(database, outbox).carry_deliveries(KeepHouse())).count == 2
    assert await deliveries(database) == []
    assert [got.headers["x-vlog-delivery-id"] for got in receiver.got] == [str(first["uid"])]


async def test_receivers_that_hang_never_hold_every_slot(
    database: Database, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "ROOM_S", 0.1)
    receiver.hang = True
    await hook(database, receiver.url, timeout_seconds=1)
    for _ in range(2):
        await upload(database)
    async with database.write() as s:
        await release(s, limit=10)
    steps = WebhookSteps(database, at_once=1)
    asked = [PostDelivery(delivery_id=each["id"], attempt=1) for each in await deliveries(database)]
    posted = await asyncio.gather(*(steps.post_delivery(ask) for ask in asked))
    assert sorted(str(each.error) for each in posted) == [
        "No answer within 1 s.",
        "Too many receivers kept us waiting; it is tried again.",
    ]
    receiver.hang = False
    assert (await steps.post_delivery(asked[1])).status == 200


async def told_of(database: Database) -> list[str]:
    found = await rows_of(database, "SELECT event_type FROM webhook_deliveries ORDER BY id")
    async with database.write() as s:
        await s.execute(text("DELETE FROM webhook_deliveries"))
    return [each["event_type"] for each in found]


async def test_a_videos_life_and_its_alerts_are_told(database: Database) -> None:
    every_alert = ("*", *USUAL_ALERTS, "worker_startup", "worker_shutdown")
    await hook(database, "http://example.org/", *every_alert)
    await hook(database, "http://example.org/", "*", active=False)
    await register(database)
    assert await told_of(database) == ["worker.registered", "worker_startup"]
    video = await upload(database)
    assert await told_of(database) == ["video.uploaded"]
    end = Finalize(job_id=video.job_id, video_id=video.video_id, duration_s=2.0, qualities=("360p",))
    for _ in range(2):  # told twice is told once
        async with database.write() as s:
            await writes.complete_job(s, end)
    assert await told_of(database) == ["video.ready"]
    exhausted, cancelled = await upload(database), await upload(database)
    await told_of(database)
    await fail(database, exhausted, RETRIES_EXHAUSTED)
    assert await told_of(database) == ["job.failed", "video.failed", "job_max_retries_exceeded"]
    async with database.write() as s:  # the same video, and another job of it
        await s.execute(
            text("INSERT INTO transcoding_jobs (video_id, kind) VALUES (:video, 'retry')"),
            {"video": exhausted.video_id},
        )
    newest = await row(database, "SELECT max(id) AS id FROM transcoding_jobs")
    again = CreatedVideo(**{**vars(exhausted), "job_id": newest["id"]})
    await fail(database, again)
    assert await told_of(database) == ["job.failed", "video.failed", "job_failed", "job_failed_pattern"]
    await fail(database, cancelled, CANCELLED)
    assert await told_of(database) == ["job.cancelled", "video.failed"]
    async with database.write() as s:
        await writes.worker_gone(s, "worker-1")
    assert await told_of(database) == ["worker.stopped", "worker_shutdown"]


async def test_nothing_is_told_of_what_was_not_committed(database: Database) -> None:
    await hook(database, "http://example.org/")
    with pytest.raises(ZeroDivisionError):
        async with database.write() as s:
            await writes.add_event(s, writes.Event("video.deleted", None, "It was deleted."))
            _ = 1 / 0
    assert await told_of(database) == []
