"""The door of the page, how soon and how still it appears, and what it shows when there is nothing."""

import asyncio
from pathlib import Path
from re import compile

import pytest
from playwright.async_api import Page, Route, expect

from tests.e2e.browsing import chromium, open_page
from tests.e2e.looking import barriers_in_both, first_paint_ms, moved, watch_for_shifts
from tests.integration.api.running import Api, serving

pytestmark = pytest.mark.browser

SECRET = "open sesame"
SOON_MS = 1000
PARTS = ".top a, .filters, .cards, .door form, .door [type=password], .door button"
BOXES = f"""() => [...document.querySelectorAll("{PARTS}")].map((one) => {{
  const {{ x, y, width }} = one.getBoundingClientRect();
  return [Math.round(x), Math.round(y), Math.round(width)];
}})"""
# As a remote worker may describe itself: none of it is a list, and its name is no HTML.
ODD = {
    "worker_name": "<b>odd</b>",
    "capabilities": {"pools": "cpu", "slots": 3, "encoders": 7, "gpu": "x", "ffmpeg": {}},
}


async def test_who_knows_the_secret_comes_in_and_stays_until_they_leave(database_url: str, tmp_path: Path) -> None:
    chromium()
    async with (
        serving(database_url, tmp_path / "storage", admin_secret=SECRET) as api,
        open_page("about:blank") as page,
    ):
        await watch_for_shifts(page)
        await page.goto(api.url)
        await sign_in(page)
        await look_around(api, page)
        await share(api, page)
        await do_without_keys(page)
        await be_alone(page)
        await page.context.set_offline(True)
        await page.get_by_role("button", name="Sign out").click()
        await expect(page.get_by_text("VLog does not answer. Please try again.")).to_be_visible()
        await page.context.set_offline(False)
        await leave(page)
        await page.reload()
        await expect(page.get_by_label("Admin secret")).to_be_enabled()


async def leave(page: Page) -> None:
    """Sign out, with another tab open: it shows the door too, as soon as its stream has ended."""
    async with page.context.expect_page() as opening:
        await page.evaluate("open('/#/workers')")
    other = await opening.value
    await expect(other.locator(".live")).to_have_text("Live")
    await page.get_by_role("button", name="Sign out").click()
    for each in (page, other):
        await expect(each.get_by_label("Admin secret")).to_be_enabled()
    await other.close()


async def sign_in(page: Page) -> None:
    field, enter = page.get_by_label("Admin secret"), page.get_by_role("button", name="Sign in")
    await expect(field).to_be_enabled()
    assert await moved(page) == []
    await field.fill("guess")
    await enter.click()
    await expect(page.get_by_role("alert")).to_have_text("The admin secret is not right.")
    assert await barriers_in_both(page, "the door") == []
    await field.fill(SECRET)
    await field.press("Enter")
    await expect(page.get_by_role("heading", name="No videos yet")).to_be_visible()
    assert await page.evaluate("document.cookie") == "", "no script can read it"
    await page.reload()
    await expect(page.get_by_role("heading", name="No videos yet")).to_be_visible()
    assert await barriers_in_both(page, "an empty library") == []
    assert await moved(page) == []


async def look_around(api: Api, page: Page) -> None:
    admin = {"X-Admin-Secret": SECRET}
    fields = {"title": "Film", "owner": "ann", "tier": "creator"}
    sent = await api.http.put("/api/videos", params=fields, content=b"bytes", headers=admin)
    assert sent.status_code == 201
    await page.keyboard.press("/")
    await page.keyboard.type("fil")
    card = page.locator(".card").filter(has=page.get_by_role("link", name="Film"))
    await expect(card).to_be_visible(timeout=15_000)
    for words in ("waiting", "ann", "creator", compile(r"just now|\d+ s ago")):
        await expect(card).to_contain_text(words)
    await page.keyboard.type("ters")
    await expect(page.get_by_role("heading", name="No videos found")).to_be_visible()
    await page.get_by_role("link", name="Show all videos").click()
    await expect(page.get_by_role("link", name="Film")).to_be_visible()
    await page.get_by_label("Tier").select_option("viral")
    await expect(page.get_by_role("heading", name="No videos found")).to_be_visible()
    await page.get_by_label("Tier").select_option("creator")
    await expect(page.get_by_role("link", name="Film")).to_be_visible()

    assert (await api.http.post("/api/worker/register", json=ODD, headers=admin)).status_code == 201
    await page.get_by_role("link", name="Workers").click()
    row = page.get_by_role("row").filter(has_text="<b>odd</b>")
    await expect(row).to_be_visible()
    await row.get_by_role("button").click()
    await page.get_by_role("menuitem", name="Look closer").click()
    await expect(page.get_by_text("It has not done anything yet.")).to_be_visible()
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Register a worker").click()
    await page.get_by_label("Name").fill("studio")
    await page.get_by_role("button", name="Register", exact=True).click()
    key = await page.locator(".secret code").inner_text()
    assert len(key) > 30
    await page.get_by_role("button", name="I have it").click()
    row = page.get_by_role("row").filter(has_text="studio")
    await expect(row).to_be_visible()
    assert key not in await page.content(), "it is shown once"
    await row.get_by_role("button").click()
    await page.get_by_role("menuitem", name="Revoke …").click()
    await page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    await expect(row).to_contain_text("revoked")
    answer = await api.http.post("/api/worker/heartbeat", json={}, headers={"X-Worker-API-Key": key})
    assert answer.status_code == 401
    await row.get_by_role("button").click()
    await page.get_by_role("menuitem", name="New key").click()
    another = await page.locator(".secret code").inner_text()
    await page.get_by_role("button", name="I have it").click()
    answer = await api.http.post("/api/worker/heartbeat", json={}, headers={"X-Worker-API-Key": another})
    assert another != key and answer.status_code == 200


async def share(api: Api, page: Page) -> None:
    """A link that expires for what is not public; then everybody's page, and what to paste into others."""
    await api.change("UPDATE videos SET status = 'ready', owner = repeat('o', 200)")
    await page.get_by_role("link", name="Library", exact=True).click()
    await page.get_by_role("link", name="Film").click()
    await fits_a_phone(page)
    await page.get_by_role("button", name="Make a link").click()
    link = await page.locator(".share a").get_attribute("href") or ""
    assert "/watch/~" in link
    assert (await api.http.get(link)).status_code == 200
    assert (await api.http.get(link.replace("~", "~0"))).status_code == 404
    assert (await api.http.get("/watch/film")).status_code == 404
    await page.get_by_role("button", name="Publish", exact=True).click()
    await expect(page.locator(".share code").nth(1)).to_contain_text(f'<iframe src="{api.url}/watch/film" title="Film"')
    assert await barriers_in_both(page, "a video that is shared") == []
    assert (await api.http.get("/watch/film")).status_code == 200
    await hear_that_it_is_ready(api, page)
    await page.reload()  # it may have looked meanwhile
    await page.get_by_role("button", name="Unpublish").click()
    await expect(page.get_by_role("button", name="Make a link")).to_be_visible()
    await page.locator("main").focus()
    await page.keyboard.press("g")
    await page.keyboard.press("l")  # the player has a use for it too
    await expect(page.get_by_role("heading", name="Library")).to_be_attached()
    assert page.url.endswith("#/")


async def hear_that_it_is_ready(api: Api, page: Page) -> None:
    """Whoever watches in public while it is made hears that all qualities are there."""
    await api.change("UPDATE videos SET status = 'processing', playable_at = now()")
    assert page.context.browser is not None
    public = await page.context.browser.new_page()  # somebody else's
    await public.clock.install()
    await public.goto(f"{api.url}/watch/film")
    await expect(public.locator(".player-time")).to_contain_text("growing")
    await api.change("UPDATE videos SET status = 'ready'")
    await public.clock.run_for(11_000)
    await expect(public.locator(".player-time")).not_to_contain_text("growing")
    await public.close()


async def fits_a_phone(page: Page) -> None:
    await expect(page.get_by_role("link", name="ooo")).to_be_visible()
    before = page.viewport_size
    assert before is not None
    await page.set_viewport_size({"width": 390, "height": 844})
    assert await page.evaluate("document.documentElement.scrollWidth") <= 390
    await page.set_viewport_size(before)


async def do_without_keys(page: Page) -> None:
    """Letters alone do nothing for who says so, and their list is found without one."""
    for wanted, place in ((False, "#/"), (True, "#/upload")):
        await page.get_by_role("button", name="Keys").click()
        await page.get_by_label("Use these keys").set_checked(wanted)
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("dialog")).to_have_count(0)
        await page.keyboard.press("u")
        assert page.url.endswith(place)


async def be_alone(page: Page) -> None:
    """Without a network: said where one is, mended by itself."""
    await page.context.set_offline(True)
    await page.get_by_role("link", name="Queues").click()
    await expect(page.get_by_role("heading", name="No connection")).to_be_visible()
    await expect(page.locator(".live")).to_have_text("Offline")
    assert await barriers_in_both(page, "offline") == []
    await page.context.set_offline(False)
    await expect(page.locator(".live")).not_to_have_text("Offline")
    # There is no Temporal here: an error with a sentence and a code.
    await expect(page.get_by_role("heading", name="That did not work")).to_be_visible(timeout=20_000)
    await expect(page.get_by_text("TEMPORAL_UNAVAILABLE")).to_be_visible()
    await expect(page.locator(".live")).to_have_text("Connected")
    # No stream is open here that would notice: nobody answers all the same.
    await page.route("**/api/queues", lambda route: route.abort())
    await expect(page.locator(".live")).to_have_text("Reconnecting")
    await page.unroute("**/api/queues")
    await expect(page.locator(".live")).to_have_text("Connected")
    assert await barriers_in_both(page, "an error") == []
    await page.evaluate("location.hash = '#/nowhere'")
    await expect(page.get_by_role("heading", name="There is nothing here")).to_be_visible()


@pytest.mark.parametrize("secret", [None, SECRET], ids=["open", "locked"])
async def test_the_first_paint_waits_for_no_script_and_nothing_moves_when_they_come(
    database_url: str, tmp_path: Path, secret: str | None
) -> None:
    chromium()
    come = asyncio.Event()

    async def hold(route: Route) -> None:
        await come.wait()
        await route.continue_()

    given = {"admin_secret": secret} if secret else {}
    async with serving(database_url, tmp_path / "storage", **given) as api, open_page("about:blank") as page:
        for title in ("One", "Two"):
            headers = {"X-Admin-Secret": secret} if secret else {}
            await api.http.put("/api/videos", params={"title": title}, content=b"bytes", headers=headers)
        await watch_for_shifts(page)
        await page.route("**/page.js", hold)
        await page.route("**/api/**", hold)
        await page.goto(api.url, wait_until="commit")
        await expect(page.get_by_text("Admin secret" if secret else "Workers", exact=True)).to_be_visible()
        before = await page.evaluate(BOXES)
        assert len(before) == (3 if secret else 7)
        await page.wait_for_function("() => performance.getEntriesByName('first-contentful-paint').length")
        paint = await first_paint_ms(page)

        come.set()
        if secret:
            await expect(page.get_by_label("Admin secret")).to_be_enabled()
        else:
            await expect(page.locator(".card-link")).to_have_count(2)
        assert await page.evaluate(BOXES) == before
        assert await moved(page) == []

        paints = [paint]
        for _ in range(3):
            await page.reload()
            await page.wait_for_function("() => performance.getEntriesByName('first-contentful-paint').length")
            paints.append(await first_paint_ms(page))
        print("first paints, ms:", [round(one) for one in paints])
        assert min(paints) < SOON_MS, paints
