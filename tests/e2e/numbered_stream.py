"""A published stream of numbered pictures, and what a player shows of it."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.async_api import Page

from contracts.plan import Rung
from contracts.states import Codec
from media.planning import PlanOptions
from media.tools import Toolbox
from tests.support import numbered
from tests.support.encoding import prepare, publish
from tests.support.eventually import eventually

FPS, SEGMENT = 25, 25  # frames
PLAYERS = {"hls.js": ("openHls", "master.m3u8"), "shaka": ("openDash", "manifest.mpd")}
RUNGS = tuple(Rung(name=f"{side}p", short_side=side, video_kbps=400, audio_kbps=64) for side in (180, 90))


@dataclass(frozen=True)
class Shown:
    number: int
    time_s: float
    height: int


def make_stream(tools: Toolbox, folder: Path, *, frames: int, codecs: tuple[Codec, ...] = (Codec.H264,)) -> Path:
    """Publish a video of numbered pictures in two sizes; return the folder of its manifests."""
    source = folder / "numbered.mp4"
    numbered.make(tools, source, "-c:v", "libx264", "-preset", "ultrafast", "-c:a", "aac", frames=frames)
    options = PlanOptions(ladder=RUNGS, segment_seconds=1, preset="veryfast", codecs=codecs)

    async def made() -> Path:
        return (await publish(await prepare(tools, source, options), folder / "out")).parent

    return asyncio.run(made())


async def play_to_the_end(page: Page, lowest: int, *, switching: bool) -> list[Shown]:
    """Play all of it; return every picture that was really presented, in the order of presentation."""
    await page.evaluate(f"start({lowest}, {str(switching).lower()})")

    async def ended() -> bool:
        state = await looked(page)
        return bool(state["ended"])

    await eventually(ended, within=120)
    return [Shown(*each) for each in (await looked(page))["pictures"]]


async def looked(page: Page) -> dict[str, Any]:
    state: dict[str, Any] = await page.evaluate("look()")
    assert state["errors"] == []
    return state


def check_shown(pictures: list[Shown]) -> None:
    """Insist that each presented picture is the right one for its time, and that none goes back.

    Never that all were seen: a busy machine drops some.
    """
    assert pictures
    wrong = [shown for shown in pictures if shown.number != round(shown.time_s * FPS)]
    assert not wrong, f"{len(wrong)} of {len(pictures)}: {wrong[:5]}"
    numbers = [shown.number for shown in pictures]
    assert numbers == sorted(numbers)
