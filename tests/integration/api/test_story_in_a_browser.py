"""A job that has no luck, as the page tells it: live, every attempt a bar of its own, and nothing missed."""

from datetime import UTC, datetime, timedelta
from re import compile
from typing import Any

import pytest
from playwright.async_api import Page, expect

from contracts.states import StepName, StepOutcome
from mirror.recorder import StepClaim
from mirror.writes import CreatedVideo
from tests.e2e.browsing import chromium, open_page
from tests.e2e.looking import barriers_in_both
from tests.integration.api.running import Api
from tests.integration.mirror import story

pytestmark = pytest.mark.browser

CRASH: dict[str, Any] = {"code": "ENCODER_CRASHED", "sentence": "The encoder crashed.", "will_retry": True}


def attempt(video: CreatedVideo, number: int) -> StepClaim:
    """Each waits ten seconds for a worker; the first a minute and a half ago."""
    waited = datetime.now(UTC) - timedelta(seconds=120 - 30 * number)
    started = waited + timedelta(seconds=10)
    return story.claim(video, StepName.TRANSCODE, attempt=number, scheduled_at=waited, started_at=started)


async def test_who_watches_a_job_sees_every_try_and_misses_nothing(lonely_api: Api) -> None:
    chromium()
    api = lonely_api
    video = await story.planned(api.database, title="Unlucky")
    await api.change("UPDATE videos SET duration = 24")
    for worker in (story.WORKER, story.OTHER):
        await story.register(api.database, worker)
    first, second, third = (attempt(video, number) for number in (1, 2, 3))
    async with open_page(api.url) as page:
        card = page.get_by_role("listitem").filter(has_text="Unlucky")
        await expect(card).to_contain_text("waiting")
        await expect(card).to_contain_text("0:24")
        await story.tell(api.database, first, story.encoded(1, 1))
        await expect(card).to_contain_text("22%")
        await read_what_was_missed(api, page)

        await page.get_by_role("link", name="Unlucky").click()
        timeline = page.get_by_role("region", name="Timeline", exact=True)
        await expect(timeline.locator(".attempt.running")).to_have_count(1)
        await story.tell(api.database, second, story.encoded(1, 2), worker=story.OTHER)
        await story.tell(api.database, second, end=StepOutcome.FAILED, worker=story.OTHER, **CRASH)
        await story.tell(api.database, third, story.encoded(2, 3), worker=story.OTHER)
        await see_every_try(page)
        qualities = page.get_by_role("region", name="Qualities")
        await expect(qualities).to_contain_text("2 of 4 segments")
        await expect(qualities).to_contain_text(compile(r"[\d.]+×, .+ left"))
        await expect(page.get_by_role("region", name="Events")).to_contain_text("ENCODER_CRASHED")
        assert await barriers_in_both(page, "a job that has no luck") == []
        await see_who_works(page, video)
        await lose_and_find(api, page, video)


async def read_what_was_missed(api: Api, page: Page) -> None:
    """Nobody rings for this change, and the stream is cut: the page comes back and begins with how things are."""
    await expect(page.locator(".live")).to_have_text("Live")
    await api.change("UPDATE transcoding_jobs SET progress_percent = 77")
    live = api.app.state.live
    for stream in live.videos.streams:
        stream.close()
    await expect(page.locator(".live")).to_have_text("Reconnecting")
    await expect(page.get_by_role("listitem").filter(has_text="Unlucky")).to_contain_text("77%")
    await expect(page.locator(".live")).to_have_text("Live")


async def see_every_try(page: Page) -> None:
    timeline = page.get_by_role("region", name="Timeline", exact=True)
    facts = timeline.locator(".attempt-facts")
    for outcome, words in (("lost", "its worker vanished"), ("failed", "ENCODER_CRASHED"), ("running", "at work")):
        bar = timeline.locator(f".attempt.{outcome}")
        await expect(bar).to_have_count(1)
        await expect(bar.locator(".stripes")).to_have_count(0 if outcome == "running" else 1)
        await bar.focus()
        await expect(facts).to_contain_text(words)
        await expect(facts).to_contain_text("waited 10 s")
        await expect(timeline.locator(".waited")).to_have_count(1)
    for words in ("studio", "attic", "cpu", "≤ 1 waiting"):
        await expect(timeline.locator("svg")).to_contain_text(words)
    await timeline.get_by_text("As a table (3)").click()
    await expect(timeline.get_by_role("row")).to_have_count(4)


async def see_who_works(page: Page, video: CreatedVideo) -> None:
    await page.keyboard.press("g")
    await page.keyboard.press("w")
    row = page.get_by_role("row").filter(has_text="attic")
    for words in ("busy", f"video {video.video_id}", "just now"):
        await expect(row).to_contain_text(words)
    await row.get_by_role("link").click()
    await expect(page.get_by_role("heading", name="Unlucky")).to_be_visible()


async def lose_and_find(api: Api, page: Page, video: CreatedVideo) -> None:
    """Somebody else deletes it while it is looked at; it is not lost."""
    assert (await api.http.delete(f"/api/videos/{video.video_id}")).status_code == 200
    await expect(page.get_by_role("heading", name=f"There is no video {video.video_id}")).to_be_visible()
    await expect(page.locator(".live")).to_have_text("Connected")
    # Also by who does not know its number.
    await page.get_by_role("link", name="To the library").click()
    await page.get_by_role("link", name="Deleted").click()
    await expect(page.get_by_role("listitem").filter(has_text="Unlucky").locator(".badge")).to_have_text("deleted")
    await page.get_by_role("link", name="Unlucky").click()
    await page.get_by_role("button", name="Restore it").click()
    await expect(page.get_by_role("heading", name="Unlucky")).to_be_visible()
