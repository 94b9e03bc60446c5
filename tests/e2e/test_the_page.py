"""The page as a person uses it: real files, a real browser, a cable that is pulled out."""

import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, Route, expect

from tests.e2e.browsing import chromium, open_page
from tests.e2e.cable import Cable, cable
from tests.e2e.looking import barriers_in_both, moved, watch_for_shifts
from tests.e2e.service import Service
from tests.support.eventually import eventually

pytestmark = [pytest.mark.browser, pytest.mark.slow]

# As a person's file manager does it: a file in the hand, moved over the page and let go.
DROP = """async ([name, data]) => {
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  const held = new DataTransfer();
  held.items.add(new File([bytes], name, { type: "video/mp4", lastModified: 1 }));
  for (const kind of ["dragenter", "dragover", "drop"])
    document.body.dispatchEvent(new DragEvent(kind, { dataTransfer: held, bubbles: true, cancelable: true }));
}"""


@pytest.fixture
async def page(slow_service: Service) -> AsyncIterator[Page]:
    chromium()
    async with open_page("about:blank") as opened:
        problems: list[str] = []
        opened.on("pageerror", lambda error: problems.append(str(error)))
        opened.on("console", lambda said: problems.append(said.text) if "Content Security" in said.text else None)
        yield opened
        assert problems == []


async def drop(page: Page, file: Path, name: str) -> None:
    data = base64.b64encode(file.read_bytes()).decode()
    await page.evaluate(DROP, [name, data])


async def test_a_dropped_file_survives_a_pulled_cable_and_is_watched_while_it_is_made(
    slow_service: Service, clip: Path, page: Page
) -> None:
    size = clip.stat().st_size
    async with cable(slow_service.url) as line:
        await page.goto(line.url)
        await expect(page.get_by_role("link", name="Upload", exact=True).first).to_be_visible()
        line.breaks_after = line.sent + size // 2
        await drop(page, clip, "from the camera.mp4")
        await line.broken.wait()
        tray = page.get_by_role("complementary", name="Uploads")
        await expect(tray).to_contain_text("The connection was lost", timeout=20_000)
        before = line.sent
        line.mend()
        await expect(tray).to_contain_text("uploaded", timeout=60_000)
        assert line.sent - before < size * 0.75, "it went on where it stopped"
        await tray.get_by_role("link", name="Watch").click()
        await watch(page, line)


async def watch(page: Page, line: Cable) -> None:
    await expect(page.get_by_role("heading", name="from the camera")).to_be_visible(timeout=20_000)
    bar = page.get_by_role("progressbar", name="360p")
    await expect(bar).to_be_visible(timeout=60_000)

    seen: set[str | None] = set()

    async def moved() -> bool:
        seen.add(await bar.get_attribute("aria-valuenow"))
        return len(seen) >= 3 or seen >= {"0", "100"}

    await eventually(moved, within=90)
    await expect(page.locator(".video-head .badge")).to_have_text("ready", timeout=120_000)
    report = page.get_by_role("region", name="Report")
    await expect(report).to_contain_text("Every segment of 3 qualities was checked", timeout=30_000)

    await page.get_by_role("button", name="Play", exact=True).first.click()

    async def plays() -> bool:
        return bool(await page.evaluate("document.querySelector('video').currentTime > 0.5"))

    await eventually(plays, within=30)
    await page.get_by_role("button", name="Quality").click()
    await page.get_by_role("menuitemradio", name="360p").click()

    async def switched() -> bool:
        return bool(await page.evaluate("document.querySelector('video').videoHeight === 360"))

    await eventually(switched, within=30)

    timeline = page.get_by_role("region", name="Timeline", exact=True)
    await expect(timeline.locator(".attempt.completed").first).to_be_visible()
    await timeline.locator(".attempt").first.focus()
    await expect(timeline.locator(".attempt-facts")).to_contain_text("waited")
    video: dict[str, Any] = await page.evaluate(
        "fetch(`/api/videos/${location.hash.split('/').at(-1)}`).then((answer) => answer.json())"
    )
    steps = await page.evaluate(f"fetch('/api/jobs/{video['job_id']}/steps').then((answer) => answer.json())")
    await expect(timeline.locator(".attempt")).to_have_count(len(steps), timeout=15_000)

    await make_anew(page, video)
    # What was there is served until the new stream is whole.
    await page.goto(f"{line.url}/watch/{video['slug']}")
    await page.get_by_role("button", name="Play", exact=True).first.click()
    await eventually(plays, within=30)


async def make_anew(page: Page, video: dict[str, Any]) -> None:
    """Ask for some of the qualities, and look at the workflow that makes them."""
    await page.get_by_role("button", name="More").click()
    await page.get_by_role("menuitem", name="Make it anew …").click()
    dialog = page.get_by_role("dialog", name="Make it anew")
    for name in ("720p", "480p"):
        await dialog.get_by_role("checkbox", name=name).uncheck()
    await dialog.get_by_role("button", name="Start").click()
    await expect(page.locator(".video-head .badge")).to_contain_text("ready, made anew", timeout=30_000)
    qualities = page.get_by_role("region", name="Qualities")
    await expect(qualities.get_by_role("progressbar")).to_have_count(1, timeout=60_000)
    await expect(qualities.get_by_role("progressbar", name="360p")).to_be_visible()
    await page.get_by_role("button", name="More").click()
    link = await page.get_by_role("menuitem", name="Workflow in Temporal").get_attribute("href")
    assert link and f"/workflows/video-{video['video_id']}-job-" in link
    assert (await page.request.get(link)).ok
    await page.keyboard.press("Escape")


async def test_another_is_cancelled_and_brought_back_and_a_worker_is_disabled(
    slow_service: Service, clip: Path, page: Page
) -> None:
    service = slow_service
    if not (await service.get("/api/videos"))["items"]:  # alone: a worker shows its speed when it has encoded something
        await service.ended((await service.upload(clip, title="A clip"))["video_id"])
    created = await service.upload(clip, title="A mistake", owner="ann")
    await page.goto(f"{service.url}/#/videos/{created['video_id']}")
    badge = page.locator(".video-head .badge")
    await page.get_by_role("button", name="Pause", exact=True).first.click()
    await expect(badge).to_have_text("paused", timeout=30_000)
    await page.get_by_role("button", name="More").click()
    await page.get_by_role("menuitem", name="Change tier …").click()
    await page.get_by_role("dialog").get_by_role("combobox").select_option("viral")
    await page.get_by_role("button", name="Change", exact=True).click()
    await expect(page.get_by_text("Its tier is viral.")).to_be_visible()
    await page.get_by_role("button", name="Resume").click()
    await expect(badge).not_to_have_text("paused", timeout=30_000)
    assert (await service.get(f"/api/jobs/{created['job_id']}"))["tier"] == "viral"
    await page.get_by_role("button", name="Cancel", exact=True).click()
    await page.get_by_role("button", name="Cancel the job").click()
    await expect(badge).to_have_text("cancelled", timeout=60_000)
    ended = await service.get(f"/api/videos/{created['video_id']}")
    assert (ended["error_code"], ended["error_message"]) == ("CANCELLED", "The job was cancelled.")
    await expect(page.get_by_role("region", name="Qualities")).not_to_contain_text("failed")

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
    # It encoded another video, or a part of this one.
    await expect(row.locator("[data-head=Speed]")).to_contain_text("×", timeout=30_000)
    for verb, state in (("Disable", "disabled"), ("Enable", "idle")):
        await row.get_by_role("button").click()
        await page.get_by_role("menuitem", name=verb).click()
        await expect(row).to_contain_text(state, timeout=60_000)  # idle with its next beat, in half a minute

        async def known(state: str = state) -> bool:
            workers = (await service.get("/api/workers"))["items"]
            return any(one["status"] == state for one in workers)

        await eventually(known, within=30)


async def test_nothing_serious_stands_in_anybodys_way_and_nothing_moves(
    slow_service: Service, clip: Path, page: Page
) -> None:
    await watch_for_shifts(page)
    if not (await slow_service.get("/api/videos"))["items"]:  # alone: a page of a video is looked at all the same
        await slow_service.ended((await slow_service.upload(clip, title="A clip"))["video_id"])
    videos = (await slow_service.get("/api/videos"))["items"]
    places = {"": "Library", "upload": "Upload", "workers": "Workers", "queues": "Queues"}
    places |= {f"videos/{one['video_id']}": one["title"] for one in videos[:2]}
    found = []
    for place, heading in places.items():
        await page.goto("about:blank")
        await page.goto(f"{slow_service.url}/#/{place}")
        await expect(page.locator("main h1")).to_have_text(heading, timeout=15_000)
        await expect(page.locator("[aria-busy=true]")).to_have_count(0)
        if place == "":
            await page.wait_for_function("() => [...document.images].some((one) => one.naturalWidth)")
        if place == "queues":
            await expect(page.get_by_role("img", name="Backlog of vlog-cpu")).to_be_visible()
        if place.startswith("videos/"):
            await expect(page.get_by_role("region", name="Events")).to_be_visible()
        assert await moved(page) == [], place
        found += await barriers_in_both(page, place)
    # The last one is a video.
    await page.get_by_role("button", name="More").click()
    await expect(page.get_by_role("menu")).to_be_visible()
    found += await barriers_in_both(page, "a menu")
    await page.get_by_role("menuitem", name="Make it anew …").click()
    found += await barriers_in_both(page, "a dialog")
    await page.keyboard.press("Escape")
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    found += await barriers_in_both(page, "the keys")
    await page.keyboard.press("Escape")
    ready = next(one for one in videos if one["status"] == "ready")
    await page.evaluate("(id) => { location.hash = '#/videos/' + id; }", ready["video_id"])
    snippet = await page.locator(".share code").nth(1).inner_text()
    # Another site: the same machine under another name, on an answer that forbids nothing.
    await page.goto(slow_service.url.replace("127.0.0.1", "localhost") + "/health")
    await page.set_content(snippet)
    await expect(page.frame_locator("iframe").get_by_role("button", name="Play", exact=True).first).to_be_visible()
    await lose_the_master(page)
    await page.goto(f"{slow_service.url}/watch/{ready['slug']}")
    await expect(page.get_by_text("The connection was lost. It goes on by itself.")).to_be_visible()
    await expect(page.get_by_role("button", name="Play", exact=True).first).to_be_visible()
    await expect(page.get_by_role("button", name="Quality")).to_be_visible()
    found += await barriers_in_both(page, "the public player")
    assert await moved(page) == []
    assert found == []


async def lose_the_master(page: Page) -> None:
    """Let nobody answer as often as hls.js asks by itself."""
    lost = 0

    async def lose(route: Route) -> None:
        nonlocal lost
        lost += 1
        await (route.abort() if lost <= 2 else route.continue_())

    await page.route("**/master.m3u8", lose)
