"""A tab that is closed half-way, and an API that does not answer when the next one looks: nothing is begun anew."""

import os
import re
from pathlib import Path

import pytest
from playwright.async_api import Route, expect

from tests.e2e.browsing import chromium, open_page
from tests.e2e.cable import cable
from tests.e2e.test_the_page import drop
from tests.integration.api.running import Api
from tests.support.eventually import eventually

pytestmark = pytest.mark.browser

SIZE = 3 << 20
SLOW = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": SIZE // 4}


async def test_a_closed_tab_goes_on_where_it_stopped(lonely_api: Api, tmp_path: Path) -> None:
    chromium()
    film = tmp_path / "film.mp4"
    film.write_bytes(os.urandom(SIZE))
    async with cable(lonely_api.url) as line, open_page("about:blank") as page:
        assert page.context.browser is not None
        context = await page.context.browser.new_context()
        first = await context.new_page()
        await first.goto(line.url)
        await (await context.new_cdp_session(first)).send("Network.emulateNetworkConditions", SLOW)
        line.breaks_after = line.sent + SIZE * 2 // 3
        await drop(first, film, "film.mp4")
        tray = first.get_by_role("complementary", name="Uploads")
        await expect(tray).to_contain_text(re.compile(r"\d+%.* of 3\.1 MB.*kB/s.* left"), timeout=15_000)
        await tray.get_by_role("button", name="Fold").click()
        await expect(tray.get_by_role("listitem")).to_have_count(0)
        await expect(tray).to_contain_text(re.compile(r"1 upload.*\d+%"))
        await line.broken.wait()
        await first.close()
        line.mend()
        before = line.sent

        second = await context.new_page()
        looks = 0

        async def is_away_once(route: Route) -> None:
            nonlocal looks
            looks += route.request.method == "HEAD"
            if looks == 1 and route.request.method == "HEAD":
                await route.fulfill(status=503)
            else:
                await route.continue_()

        await second.route("**/api/uploads/*", is_away_once)
        await second.goto(f"{line.url}/#/upload")
        await expect(second.get_by_role("heading", name="Begun earlier")).to_be_visible()
        await drop(second, film, "film.mp4")
        await expect(second.get_by_role("listitem")).to_contain_text("uploaded", timeout=30_000)
        assert looks >= 2 and line.sent - before < SIZE * 0.75, "it went on where it stopped"
        [video] = await lonely_api.rows("SELECT id FROM videos")
        assert lonely_api.files() == {f"uploads/{video['id']}.mp4": film.read_bytes()}
        assert len(await lonely_api.rows("SELECT id FROM uploads")) == 1

        await (await context.new_cdp_session(second)).send("Network.emulateNetworkConditions", SLOW)
        await drop(second, film, "mistake.mp4")
        item = second.get_by_role("listitem").filter(has_text="mistake.mp4")
        await expect(item).to_contain_text("kB/s")
        await second.get_by_role("button", name="Cancel mistake.mp4").click()
        await expect(item).to_have_count(0)

        async def is_forgotten() -> bool:
            return len(await lonely_api.rows("SELECT id FROM uploads")) == 1

        await eventually(is_forgotten, within=10)
        await expect(item).to_have_count(0)  # nor is it offered to be gone on with
