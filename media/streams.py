"""Check a published stream on disk as a player would meet it, and then some: every segment, every picture."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

from contracts.errors import EncoderCrashed, OutputIncomplete, SourceUnreadable
from contracts.layout import MPD
from media import bandwidth, commands, encoder
from media.boxes import InitFacts, SegmentFacts, read_init, read_segment
from media.playlists import Variant, read_master, read_media, read_text_playlist, read_texts
from media.subtitles import seconds_of
from media.tools import Toolbox

_STALL_S = 60.0
_DECODERS = {"avc1": "h264", "hvc1": "hevc", "av01": "av1"}  # by the first word of CODECS
_XML = "{urn:mpeg:dash:schema:mpd:2011}"


@dataclass(frozen=True)
class RungReport:
    name: str
    width: int
    height: int
    codecs: str
    segments: int
    frames: int  # decoded, every one
    duration_s: float
    boundaries_s: tuple[float, ...]
    peak_bandwidth: int
    average_bandwidth: int


@dataclass(frozen=True)
class SoundReport:
    name: str
    language: str
    codecs: str
    channels: int
    segments: int
    duration_s: float
    peak_bandwidth: int
    average_bandwidth: int


@dataclass(frozen=True)
class TextReport:
    name: str
    language: str
    cues: int


@dataclass(frozen=True)
class StreamReport:
    """What was found. There is one only if all is well: a fault raises."""

    rungs: tuple[RungReport, ...]
    audio: tuple[SoundReport, ...]
    subtitles: tuple[TextReport, ...] = ()

    @property
    def ok(self) -> bool:
        return bool(self.rungs)

    @property
    def frames(self) -> int:
        return self.rungs[0].frames

    @property
    def duration_s(self) -> float:
        return self.rungs[0].duration_s


async def verify_stream(tools: Toolbox, master: Path) -> StreamReport:
    """Check playlists, boxes and manifest against each other and decode every rung; a fault is OutputIncomplete."""
    videos, sounds = await asyncio.to_thread(read_master, master)
    audio = tuple([await _sound(tools, sound) for sound in sounds])
    rungs = tuple([await _rung(tools, video, audio) for video in videos])
    for rung in rungs[1:]:
        if (rung.boundaries_s, rung.frames) != (rungs[0].boundaries_s, rungs[0].frames):
            raise OutputIncomplete(f"{rung.name} is not cut like {rungs[0].name}.")
    await _listed_by_ffprobe(tools, master, rungs)
    await asyncio.to_thread(_check_mpd, master.with_name(MPD), rungs, audio)
    subtitles = await asyncio.to_thread(lambda: tuple(_text(text) for text in read_texts(master)))
    return StreamReport(rungs=rungs, audio=audio, subtitles=subtitles)


async def _rung(tools: Toolbox, variant: Variant, audio: Sequence[SoundReport]) -> RungReport:
    name, said = variant.path.parent.name, variant.attributes
    init, segments = await asyncio.to_thread(_read, variant.path)
    _agree(name, "RESOLUTION", said.get("RESOLUTION"), f"{init.width}x{init.height}")
    _agree(name, "CODECS", said.get("CODECS"), ",".join([init.codecs, *sorted({track.codecs for track in audio})]))
    _agree(name, "AUDIO", "AUDIO" in said, bool(audio))
    if any(segment.sync_samples[:1] != (0,) or segment.first_cts for segment in segments):
        raise OutputIncomplete(f"{name}: a segment does not begin with a keyframe at its own time.")
    shown = sorted(time for segment in segments for time in segment.times)
    steps = {later - earlier for earlier, later in pairwise(shown)}
    if shown[0] != 0 or len(steps) > 1:
        raise OutputIncomplete(f"{name}: pictures are not evenly spaced from 0.")
    frame = next(iter(steps), segments[0].duration)
    _agree(name, "FRAME-RATE", said.get("FRAME-RATE"), f"{init.timescale / frame:.3f}")
    frames = await _decode(tools, variant.path, "v:0", _DECODERS.get(init.codecs.split(".")[0], "h264"))
    if frames != len(shown):
        raise OutputIncomplete(f"{name}: {frames} of {len(shown)} pictures can be decoded.")
    peak, average = _bandwidth(init, segments)
    _agree(name, "BANDWIDTH", said.get("BANDWIDTH"), str(peak + max((t.peak_bandwidth for t in audio), default=0)))
    mean = average + max((track.average_bandwidth for track in audio), default=0)
    _agree(name, "AVERAGE-BANDWIDTH", said.get("AVERAGE-BANDWIDTH"), str(mean))
    return RungReport(
        name=name,
        width=init.width,
        height=init.height,
        codecs=init.codecs,
        segments=len(segments),
        frames=frames,
        duration_s=sum(segment.duration for segment in segments) / init.timescale,
        boundaries_s=tuple(segment.tfdt / init.timescale for segment in segments),
        peak_bandwidth=peak,
        average_bandwidth=average,
    )


async def _sound(tools: Toolbox, variant: Variant) -> SoundReport:
    name = variant.attributes.get("NAME", "sound")
    init, segments = await asyncio.to_thread(_read, variant.path)
    _agree(name, "CHANNELS", variant.attributes.get("CHANNELS"), str(init.channels))
    await _decode(tools, variant.path, "a:0", "aac")
    peak, average = _bandwidth(init, segments)
    return SoundReport(
        name=name,
        language=variant.attributes.get("LANGUAGE", "und"),
        codecs=init.codecs,
        channels=init.channels,
        segments=len(segments),
        duration_s=sum(segment.duration for segment in segments) / init.timescale,
        peak_bandwidth=peak,
        average_bandwidth=average,
    )


def _text(variant: Variant) -> TextReport:
    """Insist that subtitles are one WebVTT file in which every cue ends after it begins, within the video."""
    name = variant.attributes.get("NAME", "subtitles")
    file, seconds = read_text_playlist(variant.path)
    lines = file.read_text("utf-8").split("\n")
    times = [line.split(" --> ") for line in lines if " --> " in line]
    if lines[0] != "WEBVTT" or not times:
        raise OutputIncomplete(f"{name}: the subtitles hold no cue.")
    for begin, end in times:
        if not seconds_of(begin) < seconds_of(end) <= seconds + 0.001:
            raise OutputIncomplete(f"{name}: a cue ends before it begins, or after the video.")
    return TextReport(name=name, language=variant.attributes.get("LANGUAGE", "und"), cues=len(times))


def _read(path: Path) -> tuple[InitFacts, list[SegmentFacts]]:
    """Read a playlist and the boxes of all it lists; segments must follow each other from 0, as long as it says."""
    playlist = read_media(path)
    what = path.parent.name
    if missing := [file.name for file, _ in [(playlist.init, 0.0), *playlist.segments] if not file.is_file()]:
        raise OutputIncomplete(f"{what}: {', '.join(missing[:3])} missing.")
    init = read_init(playlist.init.read_bytes())
    segments = []
    at = 0
    for file, seconds in playlist.segments:
        segment = read_segment(file, init)
        if segment.tfdt != at:
            raise OutputIncomplete(f"{what}: {file.name} begins at {segment.tfdt} instead of {at}.")
        if abs(segment.duration / init.timescale - seconds) > 0.000_001 or round(seconds) > max(1, playlist.target_s):
            raise OutputIncomplete(f"{what}: {file.name} is not as long as its playlist says.")
        at += segment.duration
        segments.append(segment)
    return init, segments


def _bandwidth(init: InitFacts, segments: Sequence[SegmentFacts]) -> tuple[int, int]:
    durations_s = [segment.duration / init.timescale for segment in segments]
    return bandwidth.measure([segment.size_bytes for segment in segments], durations_s)


async def _decode(tools: Toolbox, playlist: Path, stream: str, decoder: str) -> int:
    """Decode all of it and return the number of pictures; not every build decodes every codec."""
    frames = 0
    argv = commands.decode(tools.pick(decoder=decoder, encoders=()), playlist, stream)
    try:
        async with aclosing(encoder.run(argv, stall_s=_STALL_S)) as reports:
            async for report in reports:
                frames = report.frame
    except (EncoderCrashed, SourceUnreadable) as error:
        raise OutputIncomplete(f"{playlist.parent.name} cannot be decoded.", detail=error.detail) from error
    return frames


async def _listed_by_ffprobe(tools: Toolbox, master: Path, rungs: Sequence[RungReport]) -> None:
    argv = [str(tools.ffprobe), "-v", "error", "-protocol_whitelist", "file", "-format_whitelist", "hls,mov,mp4,webvtt"]
    argv += ["-show_entries", "stream=codec_type,width,height", "-of", "json", f"file:{master}"]
    streams = json.loads(await encoder.output_of(argv, timeout_s=_STALL_S)).get("streams", [])
    seen = {(stream["width"], stream["height"]) for stream in streams if stream.get("codec_type") == "video"}
    if unseen := [rung.name for rung in rungs if (rung.width, rung.height) not in seen]:
        raise OutputIncomplete(f"ffprobe does not find {', '.join(unseen)} in the master playlist.")


def _check_mpd(path: Path, rungs: Sequence[RungReport], audio: Sequence[SoundReport]) -> None:
    """Insist that the DASH manifest speaks of the same segments."""
    try:
        tree = ElementTree.parse(path)
    except (OSError, ElementTree.ParseError) as error:
        raise OutputIncomplete("The DASH manifest cannot be read.", detail=str(error)) from error
    found = []
    for entry in tree.iter(f"{_XML}Representation"):
        template = entry.find(f"{_XML}SegmentTemplate")
        whole = entry.findtext(f"{_XML}BaseURL")
        if template is None and whole and (path.parent / whole).is_file():
            continue  # subtitles: one file, which the playlists were checked for
        if template is None:
            raise OutputIncomplete("The DASH manifest has a rendition without segments.")
        runs = [(int(s.get("d", 0)), int(s.get("r", 0)) + 1) for s in template.iter(f"{_XML}S")]
        length_s = sum(duration * count for duration, count in runs) / int(template.get("timescale", 1))
        segments = sum(count for _, count in runs)
        found.append((entry.get("codecs"), int(entry.get("bandwidth", 0)), segments, round(length_s, 6)))
        if not (path.parent / template.get("initialization", "-")).is_file():
            raise OutputIncomplete("The DASH manifest names an init segment that is not there.")
    media: list[RungReport | SoundReport] = [*rungs, *audio]
    if found != [(one.codecs, one.peak_bandwidth, one.segments, round(one.duration_s, 6)) for one in media]:
        raise OutputIncomplete("The DASH manifest and the playlists speak of different segments.")


def _agree(name: str, what: str, said: object, found: object) -> None:
    if said != found:
        raise OutputIncomplete(f"{name}: {what} says {said}, the media say {found}.")
