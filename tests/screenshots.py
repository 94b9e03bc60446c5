"""`make screenshots`: the README's pictures, of a real service with real videos, into docs/images/."""

import asyncio
import os
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page, async_playwright, expect

from media.tools import Toolbox, find_tools
from tests.e2e.browsing import FLAGS, chromium
from tests.e2e.service import QUICK, Service
from tests.support.eventually import eventually

IMAGES = Path(__file__).parents[1] / "docs" / "images"
DESKTOP, TALL, PHONE = (1280, 620), (1280, 1120), (390, 780)

# Encoders read at three times the speed a video plays, so that there is something to see.
PACED = """#!/bin/sh
case " $* " in
*" libx264 "*) for word do shift; [ "$word" = -i ] && set -- "$@" -readrate 3; set -- "$@" "$word"; done ;;
esac
exec "{ffmpeg}" "$@"
"""
FILMS = {
    "Harbour at dawn": (
        "gradients=s={size}:c0=0x0f2557:c1=0xf6ae2d:c2=0xf26419:c3=0x33658a:n=4:seed=11:speed=0.02",
        "ana",
        "creator",
    ),
    "Deep water, part two": (
        "mandelbrot=s={size}:start_scale=0.03:end_scale=0.01:start_x=-0.7436:start_y=0.1318",
        "ana",
        "creator",
    ),
    "How coral grows": (
        "life=s=320x180:mold=12:r=25:ratio=0.12:death_color=0x0b3954:life_color=0xff6663:seed=7,scale={size}:flags=neighbor",
        "reef lab",
        "hobby",
    ),
    "Northern lights": (
        "gradients=s={size}:c0=0x011627:c1=0x2ec4b6:c2=0x6a0dad:c3=0x0b132b:n=4:seed=5:speed=0.03:type=circular",
        "mika",
        "viral",
    ),
    "Lecture 4: fractals": ("sierpinski=s={size}:type=carpet:seed=3:jump=60", "faculty", "free"),
    "Tide pools at noon": (
        "gradients=s={size}:c0=0x14746f:c1=0x88d4ab:c2=0xffe5b4:c3=0x036666:n=4:seed=9:speed=0.02:type=spiral",
        "reef lab",
        "hobby",
    ),
    "Studio test card": ("smptehdbars=s={size}", "studio", "bulk"),
    "Sunset in ten seconds": (
        "gradients=s={size}:c0=0xff595e:c1=0xffca3a:c2=0x6a4c93:c3=0x1982c4:n=4:seed=21:speed=0.01:type=radial",
        "mika",
        "viral",
    ),
}


def make_film(tools: Toolbox, path: Path, picture: str, seconds: int) -> None:
    inputs = ["-f", "lavfi", "-i", picture.format(size="1280x720"), "-f", "lavfi", "-i", "sine=f=220:r=48000"]
    encode = ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-r", "25", "-c:a", "aac"]
    argv = [str(tools.pick().ffmpeg), "-y", "-v", "error", *inputs, "-t", str(seconds), *encode, str(path)]
    subprocess.run(argv, check=True, timeout=300)


async def settle(page: Page) -> None:
    await page.wait_for_function("() => [...document.images].every((image) => image.complete && image.naturalWidth)")
    await page.wait_for_timeout(1500)  # for the first word of the stream, and for the player's first picture


class Camera:
    """Takes each picture in light and dark, on a desk and on a phone, as it is asked."""

    def __init__(self, browser: Browser, service: Service, tools: Toolbox) -> None:
        self._browser, self._service, self._tools = browser, service, tools

    async def page(self, place: str, size: tuple[int, int] = DESKTOP, *, dark: bool = False) -> Page:
        width, height = size
        page = await self._browser.new_page(
            viewport={"width": width, "height": height},
            device_scale_factor=2 if size == PHONE else 1.5,
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
            has_touch=size == PHONE,
        )
        await page.goto(f"{self._service.url}/#/{place}")
        await expect(page.locator("main h1").first).to_be_attached()
        await settle(page)
        return page

    async def shoot(self, page: Page, name: str) -> None:
        raw = IMAGES / f"{name}.png"
        await page.screenshot(path=raw)
        small = raw.with_suffix(".webp")
        argv = ["-y", "-v", "error", "-i", str(raw), "-c:v", "libwebp", "-quality", "80", str(small)]
        # Not every build has the codec.
        if not any(self._succeeds(tool.ffmpeg, argv) for tool in self._tools.tools):
            raise SystemExit("None of the ffmpegs here writes WebP.")
        raw.unlink()
        print(f"  {small.relative_to(IMAGES.parents[1])}  {small.stat().st_size // 1000} kB", flush=True)

    def _succeeds(self, ffmpeg: Path, argv: list[str]) -> bool:
        return subprocess.run([str(ffmpeg), *argv], timeout=60, capture_output=True).returncode == 0

    async def take(self, name: str, place: str, size: tuple[int, int] = DESKTOP, *, dark: bool = False) -> None:
        page = await self.page(place, size, dark=dark)
        await self.shoot(page, name)
        await page.close()


def kill_an_encoder(service: Service) -> None:
    """Kill one encoder of the service, to see what becomes of it."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                environ = (entry / "environ").read_bytes()
            except OSError:
                continue
            if b"libx264" in words and str(service.home).encode() in environ + b" ".join(words):
                os.kill(int(entry.name), signal.SIGKILL)
                return


async def fill(service: Service, tools: Toolbox, folder: Path) -> dict[str, Any]:
    """Upload the films, one that is none, and last a long one that is still being made when this returns."""
    for title, (picture, owner, tier) in FILMS.items():
        film = folder / "film.mp4"
        make_film(tools, film, picture, 8)
        await service.ended((await service.upload(film, title=title, owner=owner, tier=tier))["video_id"])
    (folder / "notes.mp4").write_text("These are not moving pictures. " * 40)
    await service.ended(
        (await service.upload(folder / "notes.mp4", title="Notes for editing", owner="ben"))["video_id"]
    )
    make_film(tools, folder / "long.mp4", FILMS["Harbour at dawn"][0].replace("seed=11", "seed=4"), 120)
    return await service.upload(folder / "long.mp4", title="Opening night, uncut", owner="ana", tier="creator")


async def pictures(camera: Camera, service: Service, growing: dict[str, Any]) -> None:
    growing_place = f"videos/{growing['video_id']}"

    async def plays() -> bool:
        return bool((await service.get(f"/api/{growing_place}"))["stream_url"])

    await eventually(plays, within=120)
    kill_an_encoder(service)

    async def half() -> bool:
        return bool((await service.get(f"/api/{growing_place}/progress"))["percent"] >= 40)

    await eventually(half, within=180)
    page = await camera.page(growing_place, TALL, dark=True)
    await page.evaluate("const v = document.querySelector('video'); v.muted = true; v.play()")
    await page.wait_for_timeout(1500)
    await camera.shoot(page, "video-dark")
    await page.close()
    await camera.take("workers-light", "workers", (1280, 420))  # while they work
    await camera.take("workers-dark", "workers", (1280, 420), dark=True)
    await camera.take("library-light", "")
    await camera.take("library-dark", "", dark=True)
    await camera.take("library-phone", "", PHONE)
    await service.ended(growing["video_id"])
    await camera.take("video-light", growing_place, TALL)
    await camera.take("video-phone", growing_place, PHONE, dark=True)


async def main() -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    tools = await find_tools()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "ffmpeg").write_text(PACED.format(ffmpeg=tools.pick().ffmpeg))
        (folder / "ffmpeg").chmod(0o755)
        (folder / "ffprobe").symlink_to(tools.pick().ffprobe)
        service = Service(folder / "home", QUICK | {"VLOG_FFMPEG": str(folder / "ffmpeg"), "VLOG_SPAN_SECONDS": "20"})
        service.start(workers=2)
        try:
            growing = await fill(service, tools, folder)
            async with async_playwright() as playwright:
                browser = await playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
                await pictures(Camera(browser, service, tools), service, growing)
                await browser.close()
        finally:
            service.stop()


if __name__ == "__main__":
    asyncio.run(main())
