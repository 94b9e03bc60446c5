"""Does it play? In a real browser, with the players people use, over both manifests."""

from typing import Any

import pytest
from playwright.async_api import Page

from tests.e2e.browsing import chromium, open_page, player_page
from tests.e2e.service import ReadyVideo, Service
from tests.support.eventually import eventually

PLAYERS = {"hls.js": ("playHls", "stream_url"), "shaka": ("playDash", "dash_url")}


async def look(page: Page) -> dict[str, Any]:
    state: dict[str, Any] = await page.evaluate("look()")
    assert state["errors"] == []
    return state


@pytest.mark.parametrize("player", PLAYERS)
async def test_it_plays_to_the_end_and_switches_quality(player: str, service: Service, ready_video: ReadyVideo) -> None:
    chromium()
    function, address = PLAYERS[player]
    rungs = sorted(quality["height"] for quality in ready_video.answer["qualities"])
    assert len(rungs) >= 2
    with player_page() as url:
        async with open_page(url) as page:
            await page.evaluate(f"{function}('{service.url}{ready_video.answer[address]}')")

            async def playing() -> bool:
                return bool((await look(page))["time"] > 0.5)

            await eventually(playing, within=20)
            state = await look(page)
            assert sorted(level[0] for level in state["levels"]) == rungs
            assert all(level[1].startswith("avc1.") and level[2] == "mp4a.40.2" for level in state["levels"])
            assert state["height"] == rungs[0]

            await page.evaluate(f"choose({rungs[-1]})")

            async def switched() -> bool:
                return bool((await look(page))["height"] == rungs[-1])

            await eventually(switched, within=20)

            async def ended() -> bool:
                return bool((await look(page))["ended"])

            await eventually(ended, within=30)
            state = await look(page)
            assert len(state["buffered"]) == 1
            assert state["time"] == pytest.approx(ready_video.duration_s, abs=0.1)
