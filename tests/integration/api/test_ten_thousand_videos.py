"""A library of ten thousand videos: every list comes out of an index, and the page reads on to wherever one looks."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Error, Page, Route, expect
from sqlalchemy import text
from sqlalchemy.dialects.postgresql.asyncpg import dialect

from contracts.states import Tier, VideoStatus
from mirror import reads
from tests.e2e.browsing import chromium, open_page
from tests.integration.api.running import Api, serving

VIDEOS = 10_000
SLOW_S = 1.0  # far above what it takes, for machines that do other things besides

# Nine of ten are ready; one in a hundred each is viral, fails or is at work. Forty owners.
FILL = """
WITH made AS (
  INSERT INTO videos (title, slug, duration, status, owner, tier, playable_at, source_width, source_height, error_code)
  SELECT 'Episode ' || n || CASE WHEN n % 500 = 0 THEN ' with whales' ELSE '' END, 'episode-' || n, 60 + n % 600,
    CASE n % 100 WHEN 1 THEN 'failed' WHEN 2 THEN 'processing' WHEN 3 THEN 'pending' ELSE 'ready' END,
    'owner ' || n % 40,
    CASE WHEN n % 100 = 7 THEN 'viral' WHEN n % 3 = 0 THEN 'hobby' ELSE 'free' END,
    CASE WHEN n % 100 > 3 THEN now() END, 1920, 1080, CASE n % 100 WHEN 1 THEN 'CANCELLED' END
  FROM generate_series(1, :count) n RETURNING id, status
), jobs AS (
  INSERT INTO transcoding_jobs (video_id, completed_at, workflow_started_at)
  SELECT id, CASE WHEN status IN ('ready', 'failed') THEN now() END, now() FROM made RETURNING id, video_id
)
INSERT INTO video_qualities (video_id, quality, width, height, bitrate, job_id, prefix, codecs, frame_rate_num,
  frame_rate_den, timescale, frame_duration, segment_frames, frames, size_bytes, peak_bandwidth, average_bandwidth)
SELECT video_id, quality, 640, 360, 600, id, 'x/', 'avc1.64001e', 25, 1, 25, 1, 150, 1500, 1000000, 1, 1
FROM jobs, unnest(ARRAY['1080p', '720p', '360p']) quality
"""


@pytest.fixture
async def full(database_url: str, tmp_path: Path) -> AsyncIterator[Api]:
    async with serving(database_url, tmp_path / "storage") as api:
        await api.change(FILL, count=VIDEOS)
        await api.change("ANALYZE")
        yield api


FILTERS: list[dict[str, Any]] = [
    {},
    {"status": VideoStatus.READY},
    {"status": VideoStatus.FAILED},
    {"owner": "owner 7"},
    {"tier": Tier.VIRAL},
    {"tier": Tier.FREE, "status": VideoStatus.READY},
]


async def test_every_list_is_read_from_an_index_page_by_page(full: Api) -> None:
    for filters in FILTERS:
        query = reads.listed(**filters).where(text(f"videos.id < {10**18}")).limit(49)
        sql = query.compile(dialect=dialect(), compile_kwargs={"literal_binds": True})  # type: ignore[no-untyped-call]
        plan = "\n".join(
            row["QUERY PLAN"] for row in await full.rows(f"EXPLAIN {str(sql).replace(':', chr(92) + ':')}")
        )
        assert "Index Scan" in plan and "Seq Scan" not in plan and "Sort" not in plan, f"{filters}: {plan}"

    found = 0
    for filters in [*FILTERS, {"search": "WHALES"}, {"search": "episode 1", "owner": "owner 1"}, {"search": "nothing"}]:
        params: dict[str, str | int] = {"limit": 48, **filters}
        took: list[float] = []  # the quickest counts: a list without an index is slow on every page
        for _ in range(3):
            began = time.monotonic()
            answer = (await full.http.get("/api/videos", params=params)).json()
            took.append(time.monotonic() - began)
            found += len(answer["items"])
            if not answer["next_cursor"]:
                break
            params["cursor"] = answer["next_cursor"]
        assert min(took) < SLOW_S, filters
    # All, ready, owner 7 and free: three pages each; 100 failed and 100 viral; 20 with whales; episodes 1… of owner 1.
    ones = sum(1 for n in range(1, VIDEOS + 1) if n % 40 == 1 and str(n).startswith("1"))
    assert found == 4 * 144 + 100 + 100 + 20 + min(144, ones)


COUNT = "Number(document.querySelector('.card')?.getAttribute('aria-setsize') ?? 0)"
# A card that is not near is not in the page: one goes to where it would be.
GO_TO = """(place) => {
  const list = document.querySelector("ul.cards"), style = getComputedStyle(list);
  const row = list.firstElementChild.getBoundingClientRect().height + parseFloat(style.rowGap);
  const above = Math.floor((place - 1) / style.gridTemplateColumns.split(" ").length) * row;
  scrollTo(0, list.getBoundingClientRect().top + scrollY + above - 200);
}"""


async def read_on(page: Page, least: int) -> None:
    """Look at the end of the list until so many videos are known. Each look has to bring some."""
    known = 0
    while known < least:
        await page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        await page.wait_for_function(f"(known) => {COUNT} > known", arg=known, timeout=60_000)
        known = await page.evaluate(COUNT)


@pytest.mark.browser
async def test_the_page_reads_on_for_as_long_as_the_end_is_in_sight(full: Api) -> None:
    chromium()
    async with open_page(full.url) as page:
        await expect(page.locator(".card").first).to_be_visible()
        await read_on(page, 1000)
        for place in (1001, 501, 1):
            await page.evaluate(GO_TO, place)
            await expect(page.locator(f"[aria-posinset='{place}'] h2")).to_contain_text(f"Episode {VIDEOS + 1 - place}")
            assert await page.locator(".card").count() < 150, "a thousand are read, a few screens are there"

        # Far down, so many new ones come that the list begins anew: the places of those before are nobody's any more.
        await page.evaluate(GO_TO, 1001)
        await expect(page.locator("[aria-posinset='1001']")).to_be_visible()
        await full.change(FILL.replace("'episode-'", "'later-'"), count=60)
        await page.wait_for_function(f"() => {COUNT} === 48", timeout=60_000)
        await read_on(page, 200)
        await page.evaluate(GO_TO, 200)
        await expect(page.locator("[aria-posinset='200'] h2")).to_contain_text(f"Episode {VIDEOS + 1 - 200 + 60}")
        await expect(page.locator("[aria-posinset='200']")).to_be_in_viewport()

        await page.get_by_label("Tier").select_option("hobby")
        await expect(page.locator(".card").first).to_contain_text("hobby")
        assert "tier=hobby" in page.url
        await page.keyboard.press("/")
        await page.keyboard.type("whales")
        await expect(page.locator(".card")).to_have_count(6)  # every 1,500th is both

        await on_a_tall_screen(page, full.url)


async def on_a_tall_screen(page: Page, url: str) -> None:
    """The end of the first page is in sight from the beginning, and stays there whatever is chosen."""
    come, asked, lost = asyncio.Event(), [], False

    async def next_page(route: Route) -> None:
        asked.append(route.request.url)
        with suppress(Error):  # nobody wants it any more
            if lost:
                await route.abort()
            else:
                await come.wait()
                await route.continue_()

    await page.set_viewport_size({"width": 1280, "height": 4000})
    await page.route("**/api/videos?*cursor=*", next_page)
    await page.goto("about:blank")
    await page.goto(url)
    await expect(page.get_by_role("button", name="Loading …")).to_be_visible()
    await page.get_by_label("Tier").select_option("free")
    await expect(page.locator(".card-line >> text=hobby")).to_have_count(0)
    come.set()
    await page.wait_for_function(f"() => {COUNT} === 144")
    assert ["tier=free" in one for one in asked] == [False, True]

    lost = True
    await page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    await expect(page.get_by_role("button", name="Try again")).to_be_visible()
    await page.wait_for_timeout(2000)
    assert 3 <= len(asked) <= 5, "a service that is away is left alone for a while"
    await expect(page.get_by_role("alert")).to_contain_text("It is tried again by itself.")
    lost = False
    await page.wait_for_function(f"() => {COUNT} === 240")
    await expect(page.get_by_role("alert")).to_have_count(0)
