"""Text tracks of a source as WebVTT: their packets are copied out as they are, in one reading, and understood here.

No decoder of ffmpeg's looks at the text, and nothing in it can name a file.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from contracts.plan import PlannedSubtitle
from media.subtitle_text import cue_text

MOST_BYTES = 8 << 20  # of one track; a film has a hundredth of it
MOST_CUES = 20_000
_UNTIMED_MS = 5000  # a cue that does not say how long it lasts goes with the next one, or after this
_SEAM_MS = 10  # a cue that says the same again within this goes on: animated text is cut at every picture


@dataclass(frozen=True)
class Packet:
    start_s: Fraction
    duration_s: Fraction  # 0 when the container does not say
    payload: bytes


@dataclass(frozen=True)
class Cue:
    start_ms: int
    end_ms: int
    text: str


@dataclass(frozen=True)
class TrackCues:
    cues: tuple[Cue, ...]
    cut: bool  # there was more than a track may have


def words_file(folder: Path, subtitle: PlannedSubtitle) -> Path:
    """Name the file of all payloads, end to end."""
    return folder / f"{subtitle.track}.words"


def times_file(folder: Path, subtitle: PlannedSubtitle) -> Path:
    """Name the file that says when each payload is shown and how long it is."""
    return folder / f"{subtitle.track}.times"


def read_track(folder: Path, subtitle: PlannedSubtitle, video_start_s: str, duration_s: float) -> TrackCues:
    """Read one track's cues from what the command has copied out."""
    words, times = words_file(folder, subtitle), times_file(folder, subtitle)
    if not words.is_file() or not times.is_file():
        return TrackCues((), cut=False)
    with words.open("rb") as payloads, times.open(errors="replace") as lines:
        packets = list(_packets(lines, payloads.read(MOST_BYTES)))
    found = cues(subtitle.codec, packets, Fraction(video_start_s), duration_s)
    # The muxer stops a packet short of the limit or one beyond it.
    full = words.stat().st_size + times.stat().st_size > MOST_BYTES * 0.95
    return TrackCues(tuple(found[:MOST_CUES]), cut=full or len(found) > MOST_CUES)


def _packets(lines: Iterable[str], payloads: bytes) -> Iterator[Packet]:
    """Read framecrc's lines, `stream, dts, pts, duration, size, sum`, beside the payloads they speak of."""
    tick = Fraction(1, 1000)
    at = 0
    for line in lines:
        if line.startswith("#tb 0:"):
            tick = Fraction(line.partition(":")[2].strip())
        fields = line.split(",")
        if line.startswith("#") or len(fields) < 6:
            continue
        pts, duration, size = (int(field) for field in fields[2:5])
        payload = payloads[at : at + size]
        at += size
        if len(payload) == size:
            yield Packet(pts * tick, max(0, duration) * tick, payload)


def cues(codec: str, packets: Sequence[Packet], video_start_s: Fraction, duration_s: float) -> list[Cue]:
    """Time the cues from the picture's start, and leave out what is never seen or says nothing."""
    end_ms = round(duration_s * 1000)
    shown: list[Cue] = []
    latest: dict[str, int] = {}  # where each text was said last
    ordered = sorted(packets, key=lambda packet: packet.start_s)
    starts = [round((packet.start_s - video_start_s) * 1000) for packet in ordered]
    for packet, start, following in zip(ordered, starts, _following(starts), strict=True):
        until = round((packet.start_s - video_start_s + packet.duration_s) * 1000)
        if not packet.duration_s:
            until = min(following, start + _UNTIMED_MS)
        start, until = max(0, start), min(until, end_ms)
        if until <= start or not (text := cue_text(codec, packet.payload)):
            continue
        before = latest.get(text)
        if before is not None and shown[before].end_ms >= start - _SEAM_MS:
            shown[before] = replace(shown[before], end_ms=max(until, shown[before].end_ms))
            continue
        latest[text] = len(shown)
        shown.append(Cue(start, until, text))
    return shown


def _following(starts: Sequence[int]) -> list[int]:
    """Name for each start the next later one."""
    found: list[int] = []
    later = latest = starts[-1] + _UNTIMED_MS if starts else 0
    for start in reversed(starts):
        if start < latest:
            later, latest = latest, start
        found.append(later)
    return found[::-1]


def webvtt(shown: Iterable[Cue]) -> str:
    """Write a WebVTT file; the map says, for players of HLS, that cues and pictures count from the same 0."""
    head = "WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:0,LOCAL:00:00:00.000\n"
    return "\n".join([head, *(f"{_clock(cue.start_ms)} --> {_clock(cue.end_ms)}\n{cue.text}\n" for cue in shown)])


def seconds_of(clock: str) -> float:
    """Read a WebVTT time."""
    hours, minutes, seconds = clock.split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def _clock(ms: int) -> str:
    seconds, ms = divmod(ms, 1000)
    minutes, seconds = divmod(seconds, 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}.{ms:03d}"
