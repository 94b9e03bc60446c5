"""Find out what a source is. Reads the file itself and nothing else, and decodes no picture."""

import asyncio
import json
from contextlib import aclosing
from pathlib import Path
from typing import Any

from contracts.errors import EncoderStalled, SourceForbidden, SourceUnreadable, VlogError
from contracts.media import SourceFacts
from media import describe, encoder, rates, sniff
from media.packets import PacketScan, SoundScan, scan
from media.tools import Toolbox

_HEADERS_S = 60.0
_SLOWEST_BYTES_PER_S = 5_000_000  # a disk slower than this is broken, not slow


async def probe(tools: Toolbox, path: Path) -> SourceFacts:
    """Tell what the source holds, or say clearly why it cannot be used."""
    await asyncio.to_thread(sniff.check_head, path)
    found = await _headers(tools, path)
    streams: list[dict[str, Any]] = found.get("streams", [])
    sound = {int(stream["index"]): SoundScan() for stream in streams if describe.is_audio(stream)}
    video = describe.main_video(streams, bool(sound))
    pictures = await _scan(tools, path, video, sound)
    facts = describe.video_facts(video, pictures, found["format"]["format_name"])
    describe.check_times(facts, pictures, sound.values())
    lost = describe.seconds_lost(found["format"].get("duration"), video, facts, bool(sound))
    audio, silent = describe.tracks(streams, sound, facts)
    size_bytes = (await asyncio.to_thread(path.stat)).st_size
    return SourceFacts(
        format_name=found["format"]["format_name"],
        size_bytes=size_bytes,
        duration_s=facts.end_s,
        video=facts,
        audio=audio,
        warnings=(*describe.warnings(facts, lost), *silent),
    )


async def _headers(tools: Toolbox, path: Path) -> dict[str, Any]:
    argv = [*_ffprobe(tools), "-show_format", "-show_streams", "-of", "json", f"file:{path}"]
    try:
        found: dict[str, Any] = json.loads(await encoder.output_of(argv, timeout_s=_HEADERS_S))
    except EncoderStalled as error:
        raise SourceUnreadable("Reading the file's headers takes too long.", detail=error.detail) from error
    except (VlogError, ValueError) as error:
        detail = getattr(error, "detail", "")
        if "not on whitelist" in detail:
            raise SourceForbidden("This kind of file is not accepted as a video.", detail=detail) from error
        if "moov atom not found" in detail:
            raise SourceUnreadable(
                "The file is no video, or cut short: it has no table of contents.", detail=detail
            ) from error
        raise SourceUnreadable("The file is not a video that can be read.", detail=detail) from error
    if not found.get("format"):
        raise SourceUnreadable("The file is not a video that can be read.")
    return found


def _ffprobe(tools: Toolbox) -> list[str]:
    safe = [word for option, value in sniff.SAFE_INPUT.items() for word in (f"-{option}", value)]
    return [str(tools.ffprobe), "-v", "error", *safe]


async def _scan(tools: Toolbox, path: Path, video: dict[str, Any], sound: dict[int, SoundScan]) -> PacketScan:
    size_bytes = (await asyncio.to_thread(path.stat)).st_size
    fields = "packet=stream_index,pts_time,duration_time,flags"
    argv = [*_ffprobe(tools), "-show_entries", fields, "-of", "csv=p=0"]
    if not sound:
        argv += ["-select_streams", str(video["index"])]
    told = [video.get("r_frame_rate"), video.get("avg_frame_rate")]
    pictures = PacketScan(rates.candidates(told), rates.steady(told[0]))
    limit_s = _HEADERS_S + size_bytes / _SLOWEST_BYTES_PER_S
    try:
        async with aclosing(encoder.chunks_of([*argv, f"file:{path}"], timeout_s=limit_s)) as chunks:
            await scan(chunks, {**sound, int(video["index"]): pictures})
    except EncoderStalled as error:
        raise SourceUnreadable("Reading the file takes too long.", detail=error.detail) from error
    except VlogError as error:
        raise SourceUnreadable("The file's pictures cannot be read.", detail=error.detail) from error
    if pictures.packets == 0:
        raise SourceUnreadable("The file holds no pictures.")
    return pictures
