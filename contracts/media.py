"""What we know of a source."""

from fractions import Fraction

from contracts.message import Message


class FrameRate(Message):
    """A rational rate: 29.97 is 30000/1001 and is never rounded."""

    num: int
    den: int = 1

    @property
    def fraction(self) -> Fraction:
        return Fraction(self.num, self.den)

    def __str__(self) -> str:
        return f"{self.num}/{self.den}"


class VideoFacts(Message):
    stream: int  # ffmpeg's absolute stream index
    codec: str
    width: int  # as stored
    height: int
    display_width: int  # upright, with square pixels: what a viewer sees
    display_height: int
    rotation: int = 0  # counter-clockwise, as ffprobe says it: 0, 90, 180 or 270
    mirrored: bool = False  # the display matrix flips the picture as well
    crop: tuple[int, int, int, int] = (
        0,
        0,
        0,
        0,
    )  # left, top, right, bottom: what the container hides of the stored size
    sample_aspect: str = "1:1"
    pixel_format: str = ""
    bit_depth: int = 8
    field_order: str = "progressive"
    color_primaries: str = ""
    color_transfer: str = ""
    color_space: str = ""
    color_range: str = ""
    peak_nits: float = 0.0  # the brightest light of an HDR video, as it says itself; 0 when it does not
    frame_rate: FrameRate  # nominal, from the container
    average_rate: FrameRate
    variable_rate: bool = False
    crowded: int = 0  # pictures of a variable rate that are shown so shortly that `frame_rate` leaves them out
    start_s: str = "0"  # the stream's start_time exactly as ffprobe says it; a float would lose the last digit
    packets: int  # counted, not declared
    end_s: float  # end of the last picture, measured from the stream's own start
    keyframe_gap_s: float = 0.0  # longest distance between two keyframes
    keyframe_lag_s: float = 0.0  # longest time that a seek may land behind its wish, for want of times to seek by
    first_keyframe_s: float = 0.0  # since the stream's own start: nothing before it can be decoded, nor sought
    untimed: bool = False  # its pictures have no times that can be used: they follow each other at the nominal rate
    seekable: bool = (
        True  # a seek lands on a keyframe at or before the wish; else a resumed span decodes from the start
    )


class AudioFacts(Message):
    stream: int
    codec: str
    channels: int
    sample_rate: int
    layout: str = ""
    language: str = "und"
    title: str = ""
    default: bool = False
    start_s: str = "0"
    duration_s: float = 0.0
    packets: int = 0  # counted, not declared
    end_s: float = 0.0  # end of the last sound, measured from the video's start; 0 when it is not known
    gaps: tuple[tuple[float, float], ...] = ()  # long silences between packets: from, to, as the video counts


class SubtitleFacts(Message):
    """A text track: its words are read later, when they become WebVTT."""

    stream: int
    codec: str
    language: str = "und"
    title: str = ""
    default: bool = False
    forced: bool = False  # only for what is spoken in another language than the sound's


class SourceFacts(Message):
    format_name: str
    size_bytes: int
    duration_s: float
    video: VideoFacts
    audio: tuple[AudioFacts, ...] = ()
    subtitles: tuple[SubtitleFacts, ...] = ()
    warnings: tuple[str, ...] = ()
    clock_jumps: bool = False  # time stamps leap in the middle, as where a broadcast was joined
    wants_remux: bool = False  # its container seeks badly; a copy of its packets in another one will not
    remuxed: str = ""  # the container that its packets were copied to, for want of seeking in its own
