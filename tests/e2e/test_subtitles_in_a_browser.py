"""Subtitles of an upload, in real players: listed by name, chosen, and shown at their times."""

import asyncio
import re
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import Page, expect

from media.streams import verify_stream
from media.tools import Toolbox
from tests.e2e.browsing import chromium, open_page, player_page
from tests.e2e.service import Service
from tests.support.eventually import eventually

PLAYERS = {"hls.js": ("playHls", "stream_url"), "shaka": ("playDash", "dash_url")}
CUES = [(0.5, 2.25, "Hello <i>you</i>"), (3.0, 5.5, "1 &lt; 2 --&gt; 3")]
SRT = """1
00:00:00,500 --> 00:00:02,250
Hello <i>you</i>

2
00:00:03,000 --> 00:00:05,500
1 < 2 --> 3

"""


@pytest.fixture(scope="module")
def captioned(service: Service, tools: Toolbox, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A video of six seconds that begins at 7.4 s, with two sounds, two text tracks and one that is empty."""
    folder = tmp_path_factory.mktemp("captioned")
    (folder / "a.srt").write_text(SRT)
    (folder / "empty.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\n{\\an8}\n\n")
    inputs = ["-f", "lavfi", "-i", "testsrc2=s=320x180:r=30:d=6"]
    inputs += ["-f", "lavfi", "-i", "sine=f=440:d=6", "-f", "lavfi", "-i", "sine=f=880:d=6"]
    inputs += ["-i", "a.srt", "-i", "empty.srt"]
    maps = ["-map", "0", "-map", "1", "-map", "2", "-map", "3", "-map", "3", "-map", "4"]
    codecs = ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-c:a", "aac", "-c:s", "srt"]
    named = ["-metadata:s:a:0", "language=eng", "-metadata:s:a:1", "language=fra"]
    named += ["-metadata:s:s:0", "language=deu", "-metadata:s:s:1", "language=eng", "-metadata:s:s:1", "title=Signs"]
    flags = ["-disposition:s:0", "default", "-disposition:s:1", "forced", "-c:s:1", "ass"]
    argv = [str(tools.pick().ffmpeg), "-y", "-v", "error", *inputs, *maps, *codecs, *named, *flags]
    subprocess.run([*argv, "-output_ts_offset", "7.4", "clip.mkv"], check=True, timeout=60, cwd=folder)

    async def make() -> dict[str, Any]:
        created = await service.upload(Path(folder / "clip.mkv"), title="With subtitles")
        video = await service.ended(created["video_id"], within=140)
        assert video["status"] == "ready", video
        return video

    return asyncio.run(make())


async def test_the_api_names_sounds_and_subtitles(service: Service, tools: Toolbox, captioned: dict[str, Any]) -> None:
    sounds = [(sound["name"], sound["language"], sound["default"], sound["channels"]) for sound in captioned["audio"]]
    assert sounds == [("English", "eng", True, 2), ("Français", "fra", False, 2)]
    texts = [(text["name"], text["language"], text["default"], text["forced"]) for text in captioned["subtitles"]]
    assert texts == [("Deutsch", "deu", True, False), ("Signs", "eng", False, True)]
    assert [text["cues"] for text in captioned["subtitles"]] == [2, 2]
    async with httpx.AsyncClient(base_url=service.url, headers={"Origin": "http://example.test"}) as http:
        answer = await http.get(captioned["subtitles"][0]["url"])
    assert answer.headers["content-type"] == "text/vtt; charset=utf-8"
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.text.startswith("WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:0,LOCAL:00:00:00.000\n")
    job = await service.get(f"/api/jobs/{captioned['job_id']}")
    assert "The subtitles “Subtitles 3” hold no text that could be shown, and are left out." in job["notes"]
    report = await verify_stream(tools, service.storage / "videos" / captioned["slug"] / "master.m3u8")
    assert [(text.name, text.cues) for text in report.subtitles] == [("Deutsch", 2), ("Signs", 2)]
    shown = service.vlog("show", str(captioned["video_id"])).stdout
    assert "English (eng, default), Français (fra)" in shown
    assert "Deutsch (deu, default), Signs (eng, forced)" in shown


@pytest.mark.parametrize("player", PLAYERS)
async def test_cues_are_shown_at_their_times(player: str, service: Service, captioned: dict[str, Any]) -> None:
    chromium()
    function, address = PLAYERS[player]
    with player_page() as url:
        async with open_page(url) as page:
            await page.evaluate(f"{function}('{service.url}{captioned[address]}')")

            async def ready() -> bool:
                return bool((await look(page))["ready"])

            await eventually(ready, within=60)
            listed: list[list[Any]] = await page.evaluate("listTexts()")
            assert sorted(entry[:2] for entry in listed) == [["Deutsch", "de"], ["Signs", "en"]]
            assert {entry[0]: bool(entry[3]) for entry in listed} == {"Deutsch": False, "Signs": True}
            await page.evaluate("chooseText('Deutsch')")

            async def has_cues() -> bool:
                tracks: list[dict[str, Any]] = await page.evaluate("texts()")
                return any(len(track["cues"]) == len(CUES) for track in tracks)

            await eventually(has_cues, within=60)
            tracks: list[dict[str, Any]] = await page.evaluate("texts()")
            cues = next(track["cues"] for track in tracks if track["cues"])
            for (start, end, text), (begins, ends, words) in zip(cues, CUES, strict=True):
                assert (start, end) == pytest.approx((begins, ends), abs=0.02)
                assert plain(text) == plain(words)

            async def ended() -> bool:
                return bool((await look(page))["ended"])

            await eventually(ended, within=90)
            # A busy browser may look seldom; what it shows it shows at its time.
            for time, text in (await look(page))["shown"]:
                begins, ends = next((cue[0], cue[1]) for cue in CUES if plain(cue[2]) == plain(text))
                assert begins - 0.05 <= time <= ends + 0.3


async def test_the_page_offers_captions_sounds_and_a_look_ahead(service: Service, captioned: dict[str, Any]) -> None:
    chromium()
    showing = "[...document.querySelector('video').textTracks].filter((one) => one.mode === 'showing')"
    async with open_page(f"{service.url}/#/videos/{captioned['video_id']}") as page:
        asked: list[str] = []
        page.on("response", lambda answer: asked.append(f"{answer.status} {answer.url}"))
        await page.get_by_role("button", name="Captions").click()
        await page.get_by_role("menuitemradio", name="Deutsch").click()
        await page.get_by_role("button", name="Sound track").click()
        await page.get_by_role("menuitemradio", name="Français").click()
        await page.evaluate("document.activeElement.blur()")
        await page.keyboard.press("k")  # from anywhere on the page

        async def shown() -> bool:
            return "Hello" in await page.evaluate(f"{showing}.map((one) => one.activeCues?.[0]?.text ?? '').join()")

        await eventually(shown, within=30)
        assert await page.evaluate(f"{showing}.map((one) => one.label)") == ["Deutsch"]
        await page.keyboard.press("k")
        assert await page.evaluate("document.querySelector('video').paused")
        await page.keyboard.press("c")
        assert await page.evaluate(f"{showing}.length") == 0
        assert any("/audio_1/" in one and ".m4s" in one for one in asked), "the other sound is what is heard"
        await page.get_by_role("button", name="Sound track").click()
        await expect(page.get_by_role("menuitemradio", name="Français")).to_be_checked()
        await page.keyboard.press("Escape")

        bar = page.get_by_role("slider", name="Time")
        await bar.hover()
        await expect(page.locator(".seek-tip .frame")).to_be_visible()
        assert re.search(r"0:0\d", await page.locator(".seek-tip").inner_text())

        async def pictured() -> bool:
            return any(one.startswith("200 ") and "storyboard_" in one for one in asked)

        await eventually(pictured, within=10)
        await bar.focus()
        await page.keyboard.press("End")
        assert await page.evaluate("document.querySelector('video').currentTime") == pytest.approx(6.0, abs=0.2)


async def look(page: Page) -> dict[str, Any]:
    state: dict[str, Any] = await page.evaluate("look()")
    assert state["errors"] == []
    return state


def plain(text: str) -> str:
    """Take off what players write differently: escapes and marks."""
    for written, meant in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"), ("<i>", ""), ("</i>", "")):
        text = text.replace(written, meant)
    return text
