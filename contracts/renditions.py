"""What was made: whole, verified renditions, enough to write every manifest from."""

from typing import Annotated

from pydantic import AfterValidator, Field

from contracts.layout import SUBTITLES
from contracts.media import FrameRate
from contracts.message import Message
from contracts.states import Codec


class VideoRendition(Message):
    """A whole, verified rendition: enough to write every manifest from."""

    quality: str
    prefix: str  # storage prefix of its folder, with a trailing slash
    width: int
    height: int
    codec: Codec
    codecs: str  # RFC 6381, read from the init segment
    bitrate_kbps: int  # the rung's cap
    frame_rate: FrameRate
    timescale: int
    frame_duration: int  # in timescale units
    segment_frames: int
    frames: int
    size_bytes: int
    peak_bandwidth: int  # bits per second of the busiest segment
    average_bandwidth: int


class AudioRendition(Message):
    track: int
    prefix: str
    codecs: str
    language: str
    name: str
    default: bool
    channels: int
    timescale: int
    segment_durations: tuple[tuple[int, int], ...]  # (duration in timescale units, how many in a row)
    size_bytes: int
    peak_bandwidth: int
    average_bandwidth: int

    @property
    def duration_s(self) -> float:
        return sum(duration * count for duration, count in self.segment_durations) / self.timescale


class SubtitleRendition(Message):
    """A text track as one WebVTT file, beside the playlist that names it."""

    track: int
    prefix: str
    language: str
    name: str
    default: bool
    forced: bool
    cues: int
    size_bytes: int

    @property
    def key(self) -> str:
        return self.prefix + SUBTITLES


MOST_SOUND_SEGMENTS = 1_000_000  # a week of segments of half a second


def _sane_runs(runs: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """Refuse what no track is: who reads them counts them out one by one, and a number is quickly written."""
    if any(length < 0 or length > 1 << 40 or count < 1 for length, count in runs):
        raise ValueError("a segment has a length, and comes at least once")
    if sum(count for _, count in runs) > MOST_SOUND_SEGMENTS:
        raise ValueError(f"a track has at most {MOST_SOUND_SEGMENTS} segments")
    return runs


# As in AudioRendition, from whoever encoded the track: it may be a machine that is not ours.
SegmentRuns = Annotated[tuple[tuple[int, int], ...], AfterValidator(_sane_runs)]


class AudioTimeline(Message):
    """How long the stored segments of a track are, as one attempt knows it; the longest is what players are told."""

    timescale: int = Field(default=48_000, gt=0)
    segment_durations: SegmentRuns = ()
    whole: bool = False  # nothing more will come; whole and empty is a track that gave no sound

    def is_further_than(self, other: "AudioTimeline | None") -> bool:
        return other is None or (self.whole, self.segments) > (other.whole, other.segments)

    @property
    def segments(self) -> int:
        return sum(count for _, count in self.segment_durations)
