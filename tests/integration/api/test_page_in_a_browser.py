"""The door of the page, and what it shows when there is nothing, or nobody answers."""

from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.e2e.browsing import MODULES, chromium, open_page
from tests.integration.api.running import Api, serving

pytestmark = pytest.mark.browser

SECRET = "open sesame"
SHIFTS = """new Promise((tell) => new PerformanceObserver((list) => tell(list.getEntries()
  .filter((entry) => !entry.hadRecentInput).reduce((sum, entry) => sum + entry.value, 0)))
  .observe({ type: "layout-shift", buffered: true }) ?? setTimeout(() => tell(0), 500))"""
AXE = """axe.run(document).then(({ violations }) => violations
  .filter(({ impact }) => /serious|critical/.test(impact)).map(({ id }) => id))"""


async def test_who_knows_the_secret_comes_in_and_stays_until_they_leave(database_url: str, tmp_path: Path) -> None:
    chromium()
    async with serving(database_url, tmp_path / "storage", admin_secret=SECRET) as api, open_page(api.url) as page:
        await sign_in(page)
        await look_around(api, page)


async def sign_in(page: Page) -> None:
    field, enter = page.get_by_label("Admin secret"), page.get_by_role("button", name="Sign in")
    await field.fill("guess")
    await enter.click()
    await expect(page.get_by_role("alert")).to_have_text("The admin secret is not right.")
    await page.evaluate((MODULES / "axe-core" / "axe.min.js").read_text() + "; 0")
    assert await page.evaluate(AXE) == []
    await field.fill(SECRET)
    await field.press("Enter")
    await expect(page.get_by_role("heading", name="No videos yet")).to_be_visible()
    assert await page.evaluate("document.cookie") == "", "no script can read it"
    await page.reload()
    await expect(page.get_by_role("heading", name="No videos yet")).to_be_visible()
    assert await page.evaluate(SHIFTS) < 0.05


async def look_around(api: Api, page: Page) -> None:
    sent = await api.http.put(
        "/api/videos", params={"title": "Film", "owner": "ann"}, content=b"bytes", headers={"X-Admin-Secret": SECRET}
    )
    assert sent.status_code == 201
    await page.keyboard.press("/")
    await page.keyboard.type("fil")
    await expect(page.get_by_role("link", name="Film")).to_be_visible(timeout=15_000)
    await page.keyboard.type("ters")
    await expect(page.get_by_role("heading", name="Nothing fits")).to_be_visible()
    await page.get_by_role("link", name="Show all videos").click()
    await expect(page.get_by_role("link", name="Film")).to_be_visible()

    await page.context.set_offline(True)
    await page.get_by_role("link", name="Workers").click()
    await expect(page.get_by_role("heading", name="No connection")).to_be_visible()
    await page.context.set_offline(False)
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_role("heading", name="No workers")).to_be_visible()

    await page.get_by_role("button", name="Register a worker").click()
    await page.get_by_label("Name").fill("studio")
    await page.get_by_role("button", name="Register", exact=True).click()
    key = await page.locator(".secret code").inner_text()
    assert len(key) > 30
    await page.get_by_role("button", name="I have it").click()
    await expect(page.get_by_role("row").filter(has_text="studio")).to_be_visible()
    assert key not in await page.content(), "it is shown once"

    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_label("Admin secret")).to_be_visible()
    await page.reload()
    await expect(page.get_by_label("Admin secret")).to_be_visible()
