"""Decode a few pictures before anything is planned: what cannot be decoded, or only at a ruinous cost, is told now."""

from contextlib import aclosing
from pathlib import Path

from contracts.errors import (
    EncoderKilled,
    EncoderOutOfMemory,
    EncoderStalled,
    SourceTooComplex,
    SourceUnreadable,
    StorageUnavailable,
    VlogError,
)
from contracts.media import VideoFacts
from media import encoder
from media.limits import Limits
from media.sniff import SAFE_INPUT
from media.tools import Ffmpeg, Toolbox

_PICTURES = 3


async def check_decodes(tools: Toolbox, path: Path, video: VideoFacts, size_bytes: int, limits: Limits) -> None:
    """Refuse a source of which no picture can be decoded within the limits of memory and time."""
    able = [tool for tool in tools.tools if video.codec in tool.decoders]
    said = ""
    for tool in able:  # where there is none, planning names what is missing
        try:
            if await _decoded(tool, path, video, size_bytes, limits):
                return
        except EncoderStalled as error:
            raise SourceTooComplex(
                f"Decoding the first pictures takes longer than the {limits.reading_s(size_bytes):.0f} seconds it may.",
                detail=error.detail,
            ) from error
        except EncoderOutOfMemory as error:
            raise SourceTooComplex(
                "Decoding its pictures takes more memory than it may.", detail=error.detail
            ) from error
        except (StorageUnavailable, EncoderKilled):
            raise  # that says nothing of the file
        except VlogError as error:
            said = error.detail  # one build's fault may be another's strength
    if able:
        raise SourceUnreadable("None of the file's pictures can be decoded: it is damaged or encrypted.", detail=said)


async def _decoded(tool: Ffmpeg, path: Path, video: VideoFacts, size_bytes: int, limits: Limits) -> int:
    safe = [word for option, value in SAFE_INPUT.items() for word in (f"-{option}", value)]
    argv = [str(tool.ffmpeg), "-v", "error", "-nostdin", *safe, "-i", f"file:{path}", "-map", f"0:{video.stream}"]
    argv += ["-frames:v", str(_PICTURES), "-fps_mode", "passthrough", "-f", "null"]
    argv += ["-progress", "pipe:1", "-nostats", "-"]
    frames = 0
    running = encoder.run(argv, timeout_s=limits.reading_s(size_bytes), memory_bytes=limits.memory(video))
    async with aclosing(running) as reports:
        async for report in reports:
            frames = max(frames, report.frame)
    return frames
