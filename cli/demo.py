"""`vlog demo`: one video from a file to a verified stream, on everything real."""

import asyncio
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated
from urllib.parse import unquote, urlsplit

import typer

from cli.answers import Created, Video
from cli.client import ApiClient
from cli.following import display_for, follow
from cli.service import Interrupted, started, told_to_stop, unless, whereabouts
from cli.terminal import err, out, printable, say, seconds_text, show_table
from cli.videos import absolute, check_file, send
from contracts.errors import VlogError
from contracts.ids import JobId, VideoId, workflow_id
from contracts.layout import MASTER, video_prefix
from contracts.states import VideoStatus
from media.sample import make_sample
from media.tools import Toolbox, find_tools
from media.verify import StreamReport, verify_stream
from runtime.home import AlreadyRunning
from runtime.joining import Joined, resolve
from runtime.logs import configure_logs
from runtime.settings import Settings, load_settings

_SAMPLE_SECONDS = 20


def demo(
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="Your video; a sample is made without.")] = None,
    leave: Annotated[bool, typer.Option("--exit", help="Stop everything when done; 0 only if it plays.")] = False,
) -> None:
    """Transcode one video and show where it plays; serves it until Ctrl-C."""
    if file is not None:
        check_file(file)
    settings = load_settings()
    # Between progress bars only what is wrong is worth a line; the children's logs are in files.
    quiet = settings if settings.log_level == "debug" else settings.model_copy(update={"log_level": "warning"})
    configure_logs(quiet, "demo")
    raise typer.Exit(asyncio.run(_demo(settings, file, leave=leave)))


async def _demo(settings: Settings, file: Path | None, *, leave: bool) -> int:
    began = time.monotonic()
    async with told_to_stop() as told:
        try:
            async with AsyncExitStack() as keep:
                stack = None
                try:
                    stack = await keep.enter_async_context(started(settings, 1, told))
                except AlreadyRunning:
                    say("VLog is already running with this home: using it.")
                for line in whereabouts(settings):
                    say(line)
                good = await unless(told, _one_video(settings, file, began))
                if stack is not None and not leave:
                    say("Serving until Ctrl-C.", style="dim")
                    try:
                        await unless(told, stack.wait())
                    except Interrupted:
                        pass
                return 0 if good else 1
        except Interrupted:
            return 130


async def _one_video(settings: Settings, file: Path | None, began: float) -> bool:
    """Upload, follow, verify, tell; True when it plays."""
    joined = resolve(settings)
    tools = await find_tools(settings.ffmpeg)
    source = file or await sample(settings.home, tools)
    async with ApiClient.of(settings, joined.api_url) as api:
        created = await send(api, source, {})
        video = await follow(api, created.video_id, display_for(as_json=False))
        if video.status != VideoStatus.READY:
            err.print(f"The video failed: {printable(video.error_message or '')} ({video.error_code})", markup=False)
            return False
        master = local_master(joined.storage_url, created.slug)
        report = await _verified(tools, master) if master else None
        _tell(api.url, joined, created, video, master, report)
        say(f"Done in {time.monotonic() - began:.1f} s.", style="bold green" if report else "bold yellow")
        return report is not None


async def sample(home: Path, tools: Toolbox) -> Path:
    """Make the sample once per home: a moving picture with sound, whole or not at all."""
    folder = home / "demo"
    ready = folder / "sample.mp4"
    if not await asyncio.to_thread(ready.exists):
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / "sample.part.mp4"
        with out.status("Making a sample video …"):
            await make_sample(tools, part, seconds=_SAMPLE_SECONDS)
        part.replace(ready)
    return ready


def local_master(storage_url: str, slug: str) -> Path | None:
    """Find the stream on this machine; None when storage is elsewhere."""
    parts = urlsplit(storage_url)
    return Path(unquote(parts.path)) / video_prefix(slug) / MASTER if parts.scheme == "file" else None


def workflow_address(joined: Joined, created: Created) -> str | None:
    if not joined.temporal_ui_url:
        return None
    name = workflow_id(VideoId(created.video_id), JobId(created.job_id))
    return f"{joined.temporal_ui_url}/namespaces/{joined.temporal_namespace}/workflows/{name}"


async def _verified(tools: Toolbox, master: Path) -> StreamReport | None:
    with out.status("Verifying: decoding every quality …"):
        try:
            return await verify_stream(tools, master)
        except VlogError as error:
            err.print(f"The stream is not right: {printable(error.sentence)} ({error.code})", markup=False)
            return None


def _tell(
    url: str, joined: Joined, created: Created, video: Video, master: Path | None, report: StreamReport | None
) -> None:
    if report:
        rows = [
            (r.name, f"{r.width}×{r.height}", r.frames, r.segments, _rate(r.average_bandwidth), _rate(r.peak_bandwidth))
            for r in report.rungs
        ]
        columns = ("quality", "size", "frames", "segments", "average", "peak")
        say("")
        title = f"Verified: {len(rows)} qualities, {seconds_text(report.duration_s)}, {len(report.audio)} sound"
        show_table(title, columns, rows, right=columns[1:])
    places = {
        "HLS": absolute(url, video.stream_url or ""),
        "DASH": absolute(url, video.dash_url or ""),
        "workflow": workflow_address(joined, created),
        "file": str(master) if master else None,
    }
    for name, place in places.items():
        if place:
            say(f"  {name:<12} {place}")


def _rate(bits_per_second: int) -> str:
    return f"{bits_per_second / 1000:,.0f} kbit/s"
