"""Take several pictures out of a video and keep the one that shows most: not black, not flat, not blurred."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from pathlib import Path

from contracts.errors import EncoderCrashed, EncoderStalled, OutputIncomplete, SourceUnreadable
from contracts.steps import MakeThumbnail
from media import encoder, picture_commands
from media.pictures import Gray, Look, best, look_at
from media.tools import Ffmpeg

TIME_LIMIT_S = 120.0  # for one picture
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)  # of the length; openings and credits are rarely what a video is about
_COSTLY_GAP_S = 60.0  # decoding up to a picture so far from its keyframe costs more than a better one is worth


@dataclass(frozen=True)
class Candidate:
    path: Path
    at_s: float
    look: Look


async def take_thumbnail(
    tool: Ffmpeg, source: Path, folder: Path, request: MakeThumbnail, memory_bytes: int = encoder.MEMORY_BYTES
) -> Candidate:
    """Make the best of the candidates in `folder`, or of whatever pictures there are."""
    moments = dict.fromkeys(round(request.video.end_s * share, 3) for share in SHARES)
    found = [one async for one in _candidates(tool, source, folder, request, moments, memory_bytes)]
    if not any(one.look.shows_something for one in found):
        # A short clip may have one keyframe, and that may be black.
        if request.video.keyframe_gap_s <= _COSTLY_GAP_S:
            async for one in _candidates(tool, source, folder, request, moments, memory_bytes, only_keyframes=False):
                found.append(one)
                if one.look.shows_something:
                    break
        if not found:  # a seek near the end of a tiny clip may find nothing
            start = _candidates(tool, source, folder, request, (0.0,), memory_bytes, only_keyframes=False)
            found = [one async for one in start]
    if not found:
        raise OutputIncomplete("ffmpeg made no thumbnail.")
    return found[best([one.look for one in found])]


async def _candidates(
    tool: Ffmpeg,
    source: Path,
    folder: Path,
    request: MakeThumbnail,
    moments: Iterable[float],
    memory_bytes: int,
    *,
    only_keyframes: bool = True,
) -> AsyncIterator[Candidate]:
    width, height = picture_commands.look_size(request.video)
    for place, at_s in enumerate(moments):
        name = f"{'keyframe' if only_keyframes else 'picture'}-{place}"
        picture, look = folder / f"{name}.jpg", folder / f"{name}.gray"
        argv = picture_commands.candidate(
            tool, source, picture, look, request, at_s=at_s, only_keyframes=only_keyframes
        )
        try:
            await encoder.output_of(argv, timeout_s=TIME_LIMIT_S, memory_bytes=memory_bytes)
        except (EncoderCrashed, SourceUnreadable):
            continue  # a broken place in the file; the others may be whole
        except EncoderStalled:
            return  # later places of a source that cannot seek take longer still
        pixels = await asyncio.to_thread(_read, look)
        if len(pixels) == width * height and picture.is_file() and picture.stat().st_size:
            seen = await asyncio.to_thread(look_at, Gray(width, height, pixels))
            yield Candidate(picture, at_s, seen)


def _read(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""
