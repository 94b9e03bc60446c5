"""Copy a source's packets into Matroska, where a seek finds every keyframe. Nothing is decoded, nothing is lost.

A seek in MPEG-TS lands anywhere: of 900 pictures cut into spans 730 came out. PS, FLV, AVI, raw streams and the
rest are treated the same, but for pictures that are reordered and have no times: only a decoder knows theirs.
The copy costs as much disk as the source, for as long as its job lasts.
"""

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path

from contracts.errors import (
    EncoderOutOfMemory,
    EncoderStalled,
    ScratchFull,
    SourceTooComplex,
    StorageUnavailable,
    VlogError,
)
from contracts.media import SourceFacts
from media import encoder
from media.limits import Limits
from media.sniff import FAR_LOOK, SAFE_INPUT
from media.tools import Ffmpeg, Toolbox

CONTAINER = "matroska"
_HEADROOM_BYTES = 64 << 20
_GROWS_AT_MOST = 2  # a copy is about as large as its source; one that is not is no copy


async def remux(
    tools: Toolbox, source: Path, folder: Path, facts: SourceFacts, limits: Limits, *, stall_s: float
) -> Path | None:
    """Make the copy in `folder`; None where no ffmpeg here can, since not every codec fits the container."""
    free = (await asyncio.to_thread(shutil.disk_usage, folder)).free
    if free < facts.size_bytes + _HEADROOM_BYTES:
        raise ScratchFull("The disk has no room for a copy of this source in a container that seeks.")
    target = folder / "source.mkv"
    for tool, sound in _ways(tools, facts):
        running = encoder.run(
            command(tool, source, target, facts, sound=sound),
            stall_s=stall_s,
            timeout_s=2 * limits.reading_s(facts.size_bytes),
            memory_bytes=limits.probe_memory_bytes,
        )
        try:
            async with aclosing(running) as reports:
                async for _ in reports:
                    pass
        except (ScratchFull, StorageUnavailable):
            raise
        except (EncoderStalled, EncoderOutOfMemory) as error:
            raise SourceTooComplex(
                "Copying its packets takes more time or memory than it may.", detail=error.detail
            ) from error
        except VlogError:
            continue  # a codec that does not fit, or a build that trips over this file: the next way may do
        if 0 < target.stat().st_size < most_bytes(facts):
            return target
    return None


def _ways(tools: Toolbox, facts: SourceFacts) -> Iterator[tuple[Ffmpeg, str]]:
    for tool in tools.tools:
        yield tool, "copy"
    for tool in tools.tools:
        # Sound of broadcast and discs that Matroska has no name for is kept without loss in one it has.
        if facts.audio and "flac" in tool.encoders:
            yield tool, "flac"


def command(tool: Ffmpeg, source: Path, target: Path, facts: SourceFacts, *, sound: str = "copy") -> list[str]:
    """Copy the main video, every track of sound and of text, with their times as they are."""
    argv = [str(tool.ffmpeg), "-y", "-v", "error", "-nostdin", "-nostats", "-progress", "pipe:1"]
    argv += [word for option, value in (SAFE_INPUT | FAR_LOOK).items() for word in (f"-{option}", value)]
    # AVI and raw streams say only in which order pictures are decoded; what can be told of their times, is.
    argv += ["-fflags", "+genpts"]
    if not facts.clock_jumps:
        # Picture and sound keep their own start. A clock that was set in the middle is straightened instead.
        argv += ["-copyts"]
    argv += ["-i", f"file:{source}"]
    tracks = [*(track.stream for track in facts.audio), *(track.stream for track in facts.subtitles)]
    for stream in (facts.video.stream, *tracks):
        argv += ["-map", f"0:{stream}"]
    argv += ["-c", "copy", "-c:a", sound]
    return [*argv, "-map_chapters", "-1", "-fs", str(most_bytes(facts)), "-f", CONTAINER, f"file:{target}"]


def most_bytes(facts: SourceFacts) -> int:
    return _GROWS_AT_MOST * facts.size_bytes + _HEADROOM_BYTES
