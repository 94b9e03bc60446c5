"""What is written of a delivery: with a word at its end, of its own round only, and past those who delete webhooks."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from contracts.webhooks import Deliver, Outcome, Posted, RecordAttempt
from mirror.deliveries import give_up, mark_started, overdue, release
from mirror.sessions import Database
from mirror.writes_hooks import add_webhook, change_webhook, delete_webhook, record_attempt, redeliver
from tests.integration.mirror.story import row, rows_of, upload
from tests.support.eventually import eventually


async def hook(database: Database, **values: Any) -> int:
    async with database.write() as s:
        return await add_webhook(s, name="test", url="http://example.org/", events=["*"], **values)


async def let_pass(database: Database) -> None:
    async with database.write() as s:
        await release(s, limit=10)


async def test_what_a_switched_off_webhook_will_not_get_ends_with_a_word_also_when_it_is_on_again(
    database: Database,
) -> None:
    number = await hook(database)
    await upload(database)
    await let_pass(database)
    told = await row(database, "SELECT * FROM webhook_deliveries")

    async def noted(attempt: int) -> bool:
        now = datetime.now(UTC)
        posted = Posted(outcome=Outcome.FAILED, status=500, error="The receiver answered 500.")
        later = now + timedelta(hours=1)
        note = RecordAttempt(delivery_id=told["id"], round=1, attempt=attempt, posted=posted, at=now, next_try_at=later)
        async with database.write() as s:
            return await record_attempt(s, note)

    async def switch(on: bool) -> None:
        async with database.write() as s:
            await change_webhook(s, number, active=on)

    assert await noted(1)
    await switch(False)
    assert await noted(1), "told twice, what was decided stands"
    assert not await noted(2)
    await switch(True)
    assert not await noted(2)
    told = await row(database, "SELECT * FROM webhook_deliveries")
    assert (told["status"], told["next_retry_at"], told["attempt_number"]) == ("failed_permanent", None, 2)
    assert told["error_message"] == "The receiver answered 500. The webhook is switched off."
    async with database.write() as s:
        await s.execute(text("UPDATE webhook_deliveries SET started_at = now() - interval '1 hour'"))
        assert await overdue(s, limit=10) == []
    counts = await row(database, "SELECT successful_deliveries, failed_deliveries FROM webhooks")
    assert tuple(counts.values()) == (0, 1)


async def test_who_started_a_round_says_nothing_of_the_next(database: Database) -> None:
    await hook(database)
    await upload(database)
    await let_pass(database)
    told = await row(database, "SELECT id, uid FROM webhook_deliveries")
    first = Deliver(delivery_id=told["id"], uid=str(told["uid"]), round=1)
    async with database.write() as s:
        await give_up(s, told["id"], "Nobody carries it.")
        assert await redeliver(s, told["id"])
        await mark_started(s, first)
    started = "SELECT started_at FROM webhook_deliveries"
    assert (await row(database, started))["started_at"] is None, "the second round would wait for a quarter of an hour"
    async with database.write() as s:
        await mark_started(s, first.model_copy(update={"round": 2}))
    assert (await row(database, started))["started_at"] is not None


@pytest.mark.parametrize("deed", ["release", "give up"])
async def test_whoever_writes_deliveries_and_whoever_deletes_their_webhook_do_not_lock_each_other_out(
    database: Database, deed: str
) -> None:
    number = await hook(database, rate_limit_seconds=300)
    await upload(database)
    await let_pass(database)
    first = await row(database, "SELECT id FROM webhook_deliveries")
    # One of the same kind, which is swallowed, and one of another, which passes and counts for its webhook.
    await upload(database)
    other = "INSERT INTO webhook_deliveries (webhook_id, event_type, event_data, event_id) VALUES (:id, 'x', '{}', 0)"
    async with database.write() as s:
        await s.execute(text(other), {"id": number})

    async def write() -> None:
        async with database.write() as s:
            if deed == "release":
                await release(s, limit=10)
            else:
                await give_up(s, first["id"], "Nobody carries it.")

    async def waits() -> bool:
        query = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        return bool(await rows_of(database, query))

    async with database.write() as deleting:
        await deleting.execute(text("SELECT id FROM webhooks FOR UPDATE"))  # what a DELETE does first
        writing = asyncio.create_task(write())
        await eventually(waits, within=30, every=0.02)
        await delete_webhook(deleting, number)
    await writing
    assert await rows_of(database, "SELECT 1 FROM webhook_deliveries") == []
