"""What a browser measures of a page while it is looked at: what stands in the way, what moves, how soon."""

from typing import Any

from playwright.async_api import Page

from tests.e2e.browsing import MODULES

_AXE = """async () => (await axe.run(document, { resultTypes: ["violations"] })).violations
  .filter(({ impact }) => impact === "serious" || impact === "critical")
  .map(({ id, nodes }) => id + ": " + nodes.map((node) => node.html.slice(0, 200)).join(" | "))"""

_SHIFTS = """
window.shifts = [];
new PerformanceObserver((list) => {
  for (const { value, hadRecentInput, sources } of list.getEntries())
    if (!hadRecentInput) shifts.push([value, ...sources.map(({ node }) => node?.outerHTML?.slice(0, 120) ?? "gone")]);
}).observe({ type: "layout-shift", buffered: true });
"""
NOTHING = 0.001  # of the window: less than anybody sees


async def watch_for_shifts(page: Page) -> None:
    """Note whatever moves by itself, on every page that is opened from now on."""
    await page.add_init_script(_SHIFTS)


async def moved(page: Page) -> list[Any]:
    """Tell what has moved by itself since the page was opened, if that is enough to be seen."""
    shifts: list[Any] = await page.evaluate("shifts")
    return shifts if sum(shift[0] for shift in shifts) > NOTHING else []


async def first_paint_ms(page: Page) -> float:
    paint: float = await page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    return paint


async def barriers(page: Page) -> list[str]:
    """Tell what keeps people out, as axe sees it. It is no script of the page: its policy would refuse it."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate((MODULES / "axe-core" / "axe.min.js").read_text() + "; 0")
    found: list[str] = await page.evaluate(_AXE)
    return found


async def barriers_in_both(page: Page, place: str) -> list[str]:
    """The same in light and in dark."""
    found = []
    for theme in ("light", "dark"):
        await page.emulate_media(color_scheme="light" if theme == "light" else "dark", reduced_motion="reduce")
        found += [f"{place} in {theme}: {barrier}" for barrier in await barriers(page)]
    return found
