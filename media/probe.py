"""Find out what a source is. Reads the file itself and nothing else; decodes no more than a few pictures."""

import asyncio
import json
from contextlib import aclosing
from pathlib import Path
from typing import Any

from contracts.errors import (
    EncoderKilled,
    EncoderOutOfMemory,
    EncoderStalled,
    SourceForbidden,
    SourceTooComplex,
    SourceTooManyStreams,
    SourceUnreadable,
    StorageUnavailable,
    VlogError,
)
from contracts.media import SourceFacts
from media import describe, encoder, rates, refusals, sniff
from media.limits import Limits
from media.packets import PacketScan, SoundScan, scan
from media.tools import Toolbox
from media.trial import check_decodes

# Poor seekers that gain nothing by a copy: they are short, or so large that a second one is worse.
_STAY = frozenset({"gif", "apng", "yuv4mpegpipe"})
_MOST_IN_ONE_PIECE = 2  # a single block may be half of all memory: no honest table of contents is


async def probe(tools: Toolbox, path: Path, limits: Limits | None = None) -> SourceFacts:
    """Tell what the source holds, or say clearly why it cannot be used."""
    limits = limits or Limits()
    await asyncio.to_thread(sniff.check_head, path)
    size_bytes = (await asyncio.to_thread(path.stat)).st_size
    found = await _headers(tools, path, limits)
    streams: list[dict[str, Any]] = found.get("streams", [])
    refusals.check_streams(streams, limits)
    video = describe.main_video(streams, any(map(describe.is_audio, streams)))
    streams, others = describe.of_one_programme(streams, video, found.get("programs", []))
    sound = {int(stream["index"]): SoundScan() for stream in streams if describe.is_audio(stream)}
    refusals.check_video(video, size_bytes, limits)
    pictures = await _scan(tools, path, size_bytes, video, sound, limits)
    format_name = found["format"]["format_name"]
    facts = describe.video_facts(video, pictures, format_name)
    if not describe.is_sought(streams, video, format_name):
        facts = facts.model_copy(update={"seekable": False})
    # Pixels may be ten times as wide as high: it is the widened picture that is encoded.
    limits.check_size(facts.display_width, facts.display_height)
    wants_remux = not facts.seekable and not facts.untimed and format_name not in _STAY
    if not wants_remux:
        # A broadcast's clock may be set in the middle of it: the remux puts that right, and is looked at again.
        describe.check_times(facts, pictures, sound.values())
    if not (wants_remux and pictures.jumps):
        limits.check_length(facts.end_s)
        limits.check_rate(facts.packets, facts.end_s)
    lost = describe.seconds_lost(found["format"].get("duration"), video, facts, bool(sound), limits.least_share)
    if not wants_remux:
        await check_decodes(tools, path, facts, size_bytes, limits)
    audio, silent = describe.tracks(streams, sound, facts)
    subtitles, unread = describe.subtitles(streams)
    return SourceFacts(
        format_name=format_name,
        size_bytes=size_bytes,
        duration_s=facts.end_s,
        video=facts,
        audio=audio,
        subtitles=subtitles,
        warnings=(*describe.warnings(facts, lost), *others, *silent, *unread),
        clock_jumps=pictures.jumps,
        wants_remux=wants_remux,
    )


async def _headers(tools: Toolbox, path: Path, limits: Limits) -> dict[str, Any]:
    argv = [*_ffprobe(tools, limits), "-show_format", "-show_programs", "-show_streams", "-of", "json", f"file:{path}"]
    try:
        said = await encoder.output_of(argv, timeout_s=limits.probe_s, memory_bytes=limits.probe_memory_bytes)
        found: dict[str, Any] = json.loads(said)
    except (VlogError, ValueError) as error:
        raise _refusal(error, limits.probe_s) from error
    if not found.get("format"):
        raise SourceUnreadable("The file is not a video that can be read.")
    return found


def _refusal(error: Exception, allowed_s: float) -> VlogError:
    """Say why ffprobe could not read a file, in words for whoever sent it."""
    detail = getattr(error, "detail", "")
    match error:
        case StorageUnavailable() | EncoderKilled():
            return error  # that says nothing of the file
        case EncoderStalled():
            return SourceTooComplex(
                f"Reading the file takes longer than the {allowed_s:.0f} seconds it may.", detail=detail
            )
        case EncoderOutOfMemory():
            return SourceTooComplex(
                "Reading the file takes more memory than it may: its tables are absurd.", detail=detail
            )
    for words, refusal in _REFUSALS:
        if words in detail:
            return type(refusal)(refusal.sentence, detail=detail)
    return SourceUnreadable("The file is not a video that can be read.", detail=detail)


_REFUSALS = (
    ("not on whitelist", SourceForbidden("This kind of file is not accepted as a video.")),
    ("moov atom not found", SourceUnreadable("The file is no video, or cut short: it has no table of contents.")),
    ("exceeds max_streams", SourceTooManyStreams("The file has more streams than any video: over a thousand.")),
)


def _ffprobe(tools: Toolbox, limits: Limits) -> list[str]:
    safe = [word for option, value in (sniff.SAFE_INPUT | sniff.FAR_LOOK).items() for word in (f"-{option}", value)]
    # Where the kernel does not count memory, ffmpeg does at least refuse a single absurd piece of it.
    largest = ["-max_alloc", str(limits.probe_memory_bytes // _MOST_IN_ONE_PIECE)]
    return [str(tools.ffprobe), "-v", "error", *largest, *safe]


async def _scan(
    tools: Toolbox, path: Path, size_bytes: int, video: dict[str, Any], sound: dict[int, SoundScan], limits: Limits
) -> PacketScan:
    fields = "packet=stream_index,pts_time,dts_time,duration_time,pos,flags"
    # Zeros are pictures only where nothing is compressed: black ones.
    raw = video.get("codec_name") == "rawvideo"
    whole_bytes = size_bytes if raw else await asyncio.to_thread(sniff.written_bytes, path)
    argv = [*_ffprobe(tools, limits), "-show_entries", fields, "-of", "csv=p=0"]
    if not sound:
        argv += ["-select_streams", str(video["index"])]
    told = [video.get("r_frame_rate"), video.get("avg_frame_rate")]
    pictures = PacketScan(rates.candidates(told), rates.steady(told[0]))
    reading = encoder.chunks_of(
        [*argv, f"file:{path}"],
        timeout_s=limits.reading_s(size_bytes),
        memory_bytes=limits.probe_memory_bytes,
    )
    try:
        async with aclosing(reading) as chunks:
            await scan(chunks, {**sound, int(video["index"]): pictures}, whole_bytes)
    except (EncoderStalled, EncoderOutOfMemory, EncoderKilled, StorageUnavailable) as error:
        raise _refusal(error, limits.reading_s(size_bytes)) from error
    except VlogError as error:
        raise SourceUnreadable("The file's pictures cannot be read.", detail=error.detail) from error
    if pictures.packets == 0:
        raise SourceUnreadable("The file holds no pictures.")
    return pictures
