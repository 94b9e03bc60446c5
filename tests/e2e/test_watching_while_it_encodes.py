"""Somebody who joins while a video is still being encoded sees it from the start to the end."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import Page, expect

from media.tools import Toolbox
from tests.e2e.browsing import chromium, open_page, player_page
from tests.e2e.conftest import make_clip
from tests.e2e.service import Service
from tests.support.eventually import eventually

SECONDS = 40


async def look(page: Page) -> dict[str, Any]:
    state: dict[str, Any] = await page.evaluate("look()")
    assert [error for error in state["errors"] if error.endswith("fatal=true")] == []
    return state


async def passes(page: Page, seconds: float, *, within: float) -> None:
    async def passed() -> bool:
        return bool((await look(page))["time"] > seconds)

    await eventually(passed, within=within)


@pytest.mark.slow
@pytest.mark.browser
async def test_who_joins_early_plays_from_the_start_over_the_edge_to_the_end(
    slow_service: Service, tools: Toolbox, tmp_path: Path
) -> None:
    chromium()
    service = slow_service
    clip = tmp_path / "clip.mp4"
    make_clip(tools, clip, seconds=SECONDS, size="854x480")
    # The browser first: it may take longer to start than the video to encode.
    with player_page() as url:
        async with open_page(url) as page:
            await watch_it_grow(service, page, clip)


async def watch_it_grow(service: Service, page: Page, clip: Path) -> None:
    created = await service.upload(clip, title="early")
    video: dict[str, Any] = {}

    async def playable() -> bool:
        video.update(await service.get(f"/api/videos/{created['video_id']}"))
        return bool(video["stream_url"])

    await eventually(playable, within=90)
    assert (video["status"], video["dash_url"], video["qualities"]) == ("processing", None, [])
    assert video["playable_at"] is not None
    stream = service.url + video["stream_url"]

    async with httpx.AsyncClient(timeout=10) as http:
        master = await http.get(stream)
        lowest = await http.get(stream.replace("master.m3u8", "r1/360p/playlist.m3u8"))
    assert "r1/360p/playlist.m3u8" in master.text and "r1/audio_0/playlist.m3u8" in master.text
    assert "#EXT-X-PLAYLIST-TYPE:EVENT" in lowest.text and "#EXT-X-ENDLIST" not in lowest.text
    edge = 2.0 * lowest.text.count("#EXTINF")
    assert 0 < edge < SECONDS

    await page.evaluate("video.addEventListener('playing', () => { seen.from ??= video.currentTime; })")
    await page.evaluate(f"playHls('{stream}')")
    await passes(page, 0.5, within=60)
    state = await look(page)
    # A busy browser tells of the first picture a little late.
    assert state["from"] < 1 and state["buffered"][0][0] == 0
    now = await service.get(f"/api/videos/{created['video_id']}")
    assert now["status"] == "processing", "it must still be growing when somebody watches"

    await join_late(service, page, created["video_id"], stream)
    await passes(page, edge + 1, within=edge + 60)
    await page.evaluate("video.currentTime = 1")
    await passes(page, 2, within=30)
    assert (await look(page))["time"] < edge + 1, "it went back"

    # The rest a little faster, yet slower than it is encoded.
    await page.evaluate("video.playbackRate = 1.7")

    async def ended() -> bool:
        return bool((await look(page))["ended"])

    await eventually(ended, within=120)
    state = await look(page)
    assert state["time"] == pytest.approx(SECONDS, abs=0.1)
    assert len(state["buffered"]) == 1

    ready = await service.ended(created["video_id"], within=90)
    assert (ready["status"], ready["playable_at"]) == ("ready", video["playable_at"])
    assert ready["dash_url"] is not None
    events = [event["event"] for event in await service.get(f"/api/jobs/{created['job_id']}/events")]
    assert events.count("video.playable") == 1
    assert events.index("video.playable") < events.index("quality.completed")


async def join_late(service: Service, page: Page, video_id: int, stream: str) -> None:
    """Open our own page when so much is there that a player left to itself would begin near the end of it."""

    async def is_long() -> bool:
        async with httpx.AsyncClient(timeout=10, verify=False) as http:
            lowest = await http.get(stream.replace("master.m3u8", "r1/360p/playlist.m3u8"))
        return lowest.text.count("#EXTINF") >= 6

    await eventually(is_long, within=30)
    assert page.context.browser is not None
    other = await page.context.browser.new_page()
    await other.goto(f"{service.url}/#/videos/{video_id}")
    await other.get_by_role("button", name="Play", exact=True).first.click()
    await expect(other.locator(".player-time")).to_contain_text("growing")
    time = "document.querySelector('video').currentTime"
    await other.wait_for_function(f"() => {time} > 0.1")
    assert await other.evaluate(time) < 4
    await other.close()
