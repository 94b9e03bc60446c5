"""The page as a person uses it, in a real browser."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.e2e.browsing import MODULES, chromium, open_page
from tests.e2e.service import Service
from tests.support.eventually import eventually

pytestmark = [pytest.mark.browser, pytest.mark.slow]

AXE = """async () => (await axe.run(document, { resultTypes: ["violations"] })).violations
  .filter(({ impact }) => impact === "serious" || impact === "critical")
  .map(({ id, nodes }) => id + ": " + nodes.map((node) => node.html.slice(0, 200)).join(" | "))"""


@pytest.fixture
async def page(slow_service: Service) -> AsyncIterator[Page]:
    chromium()
    async with open_page("about:blank") as opened:
        problems: list[str] = []
        opened.on("pageerror", lambda error: problems.append(str(error)))
        opened.on("console", lambda said: problems.append(said.text) if "Content Security" in said.text else None)
        yield opened
        assert problems == []


async def test_another_is_cancelled_and_brought_back_and_a_worker_is_disabled(
    slow_service: Service, clip: Path, page: Page
) -> None:
    service = slow_service
    created = await service.upload(clip, title="A mistake", owner="ann")
    await page.goto(f"{service.url}/#/videos/{created['video_id']}")
    await page.get_by_role("button", name="Cancel", exact=True).click()
    await page.get_by_role("button", name="Cancel the job").click()
    await expect(page.locator(".video-head .badge")).to_have_text("cancelled", timeout=60_000)
    assert (await service.get(f"/api/videos/{created['video_id']}"))["error_code"] == "CANCELLED"

    await page.get_by_role("button", name="More").click()
    await page.get_by_role("menuitem", name="Delete …").click()
    await page.get_by_role("button", name="Delete", exact=True).click()
    await expect(page.get_by_text("is deleted")).to_be_visible()
    await page.get_by_role("button", name="Undo").click()
    await expect(page.get_by_role("link", name="A mistake")).to_be_visible()

    await page.keyboard.press("g")
    await page.keyboard.press("w")
    row = page.get_by_role("row").filter(has_text="local").first
    await expect(row).to_be_visible()
    for verb, state in (("Disable", "disabled"), ("Enable", "idle")):
        await row.get_by_role("button").click()
        await page.get_by_role("menuitem", name=verb).click()
        await expect(row).to_contain_text(state, timeout=30_000)

        async def known(state: str = state) -> bool:
            workers = (await service.get("/api/workers"))["items"]
            return any(one["status"] == state for one in workers)

        await eventually(known, within=30)


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_nothing_serious_stands_in_anybodys_way(slow_service: Service, page: Page, theme: str) -> None:
    await page.emulate_media(color_scheme="light" if theme == "light" else "dark", reduced_motion="reduce")
    videos = (await slow_service.get("/api/videos"))["items"]
    places = {"": "Library", "upload": "Upload", "workers": "Workers"}
    places |= {f"videos/{one['video_id']}": one["title"] for one in videos[:2]}
    await page.goto(slow_service.url)
    # Not a script of the page: its policy would refuse it.
    await page.evaluate((MODULES / "axe-core" / "axe.min.js").read_text() + "; 0")
    for place, heading in places.items():
        await page.evaluate("(place) => { location.hash = '#/' + place; }", place)
        await expect(page.locator("main h1")).to_have_text(heading, timeout=15_000)
        assert await page.evaluate(AXE) == [], f"{place} in {theme}"
