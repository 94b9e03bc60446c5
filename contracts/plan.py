"""What we have decided to make of a source: a ladder, a frame grid, spans, and the renditions."""

from enum import StrEnum

from pydantic import Field, computed_field

from contracts.media import FrameRate
from contracts.message import Message
from contracts.states import Codec


class Rung(Message):
    """A line of the ladder. Its number is the short side; the rates are caps."""

    name: str
    short_side: int
    video_kbps: int
    audio_kbps: int


LADDER: tuple[Rung, ...] = (
    Rung(name="2160p", short_side=2160, video_kbps=15000, audio_kbps=192),
    Rung(name="1440p", short_side=1440, video_kbps=8000, audio_kbps=192),
    Rung(name="1080p", short_side=1080, video_kbps=5000, audio_kbps=128),
    Rung(name="720p", short_side=720, video_kbps=2500, audio_kbps=128),
    Rung(name="480p", short_side=480, video_kbps=1000, audio_kbps=96),
    Rung(name="360p", short_side=360, video_kbps=600, audio_kbps=96),
)

QUALITY_PATTERN = r"^\d+p(-(hevc|av1))?$"
RUNG_PATTERN = r"^\d+p$"


def quality_name(rung: str, codec: Codec) -> str:
    """Name a rendition: H.264 is what everybody has and goes without saying."""
    return rung if codec is Codec.H264 else f"{rung}-{codec}"


class Grid(Message):
    """The frame grid that every rung and every span of a video shares."""

    frame_rate: FrameRate
    frames: int  # pictures of the whole video on this grid
    segment_frames: int

    @computed_field  # type: ignore[prop-decorator]
    @property
    def segments(self) -> int:
        return -(-self.frames // self.segment_frames)

    def frames_in(self, segment: int) -> int:
        """Count the pictures of one segment; only the last may be short."""
        return min(self.segment_frames, self.frames - segment * self.segment_frames)

    def seconds(self, frames: int) -> float:
        return float(frames / self.frame_rate.fraction)

    @property
    def duration_s(self) -> float:
        return self.seconds(self.frames)


class Span(Message):
    """A run of whole segments: our unit of parallel encoding."""

    first_segment: int
    segments: int

    @property
    def end(self) -> int:
        """Name the first segment behind it."""
        return self.first_segment + self.segments

    def overlaps(self, other: "Span") -> bool:
        return self.first_segment < other.end and other.first_segment < self.end

    def contains(self, other: "Span") -> bool:
        return self.first_segment <= other.first_segment and other.end <= self.end


class Capacity(Message):
    """What could encode right now: a hint for cutting, never a promise."""

    workers: int = 1
    slots: int = 2  # of all of them
    each: tuple[int, ...] = ()  # the slots of every one; empty: of one worker
    jobs: int = 1  # that want them, and are as urgent
    builds: dict[str, int] = Field(default_factory=dict)  # by ffmpeg: how many of the workers have it; empty: not known

    @property
    def share(self) -> int:
        """Give how many slots one job may count on."""
        return max(1, self.slots // max(1, self.jobs))


class IdleGpu(Message):
    """A worker with a GPU that has room now, and what it can encode there."""

    slots: int  # free ones
    encoders: dict[Codec, str]  # codec: the encoder of its device


class ToneMap(StrEnum):
    NONE = "none"
    ZSCALE = "zscale"
    TABLES = "tables"  # the same curve in 16 bits, for a build without zscale


class PlannedRendition(Message):
    """One rung of this video: what a transcode step is asked to make."""

    quality: str
    width: int
    height: int
    video_kbps: int
    codec: Codec = Codec.H264
    encoder: str = "libx264"  # the software one of its codec or, when `gpu`, one of a device such as `h264_nvenc`
    gpu: bool = False  # encoded on `vlog-gpu`, in steps of its own; it may descend to the CPU, and starts anew then
    # The build that makes it; those that share a decode share the build. Of a GPU rendition empty: each worker
    # knows which of its ffmpegs reaches the device.
    ffmpeg: str = ""
    generation: int = 0  # raised when the rendition starts anew; its folder changes with it
    descended: str = ""  # why it is no longer a GPU's, in a sentence for people

    @property
    def is_alternative(self) -> bool:
        """Tell whether the video plays without it: every player has H.264."""
        return self.codec is not Codec.H264

    @property
    def folder(self) -> str:
        """Name what it is stored in: `360p`, and `360p.1` when it has started anew."""
        return self.quality + (f".{self.generation}" if self.generation else "")


class PlannedAudio(Message):
    track: int  # 0 is the first audio rendition
    stream: int
    kbps: int
    channels: int = 2
    language: str = "und"
    name: str = "Main"
    default: bool = False
    start_s: str = "0"
    source_channels: int = 2
    source_layout: str = ""
    gaps: tuple[tuple[float, float], ...] = ()
    ffmpeg: str = ""  # the build that makes it
    generation: int = 0  # raised when the track starts anew; its folder changes with it


class PlannedSubtitle(Message):
    track: int  # 0 is the first subtitle rendition
    stream: int
    codec: str
    language: str = "und"
    name: str = "Subtitles"
    default: bool = False
    forced: bool = False


class Encoding(Message):
    """How all renditions of a job are encoded; frozen with the plan."""

    preset: str = "medium"
    crf: float = 22
    deinterlace: bool = False
    field_rate: bool = False  # a picture of each field: what moved on a television moves here
    narrow_gamut: bool = False  # an SDR picture in the colours of BT.2020 or P3 is brought to those of BT.709
    tone_map: ToneMap = ToneMap.NONE


class TranscodePlan(Message):
    grid: Grid
    renditions: tuple[PlannedRendition, ...]  # H.264, largest first: each is scaled from the one before; then others
    skipped: tuple[str, ...] = ()
    audio: tuple[PlannedAudio, ...] = ()
    subtitles: tuple[PlannedSubtitle, ...] = ()
    spans: tuple[Span, ...]
    lists: tuple[tuple[str, ...], ...] = ()  # qualities that share one decode, the earliest wanted first
    window: int = 4  # steps of one list that are scheduled at a time
    gpu_start_s: float = 60.0  # a GPU begins a step within this time, or the CPU makes the rendition
    encoding: Encoding = Encoding()
    ffmpeg: str = ""  # the build for thumbnail and storyboard; renditions and tracks name their own
    notes: tuple[str, ...] = ()  # decisions worth telling a person

    @property
    def lowest(self) -> PlannedRendition:
        """Give the rendition that makes the video playable: the smallest that every player has."""
        return [rendition for rendition in self.renditions if not rendition.is_alternative][-1]

    def goes_on_with(self, before: "TranscodePlan | None") -> tuple[str, ...]:
        """Name what an earlier job has begun and what does not start anew: it stays with the encoder that began it."""
        begun = {(r.quality, r.generation) for r in before.renditions} if before is not None else set()
        return tuple(r.quality for r in self.renditions if (r.quality, r.generation) in begun)
