"""What was found in a source and what was decided about it: the report in `GET /api/videos/{id}`.

Read from the stored facts and plan, which an older version may have written: what is not there is left out.
Whatever a file says of itself is a stranger's text: only printable characters, and not many.
"""

from typing import Annotated, Any, Self

import structlog
from pydantic import BeforeValidator, ConfigDict, Field, ValidationError

from api.schemas import Answer, Video, example
from mirror.views import ReportView

log = structlog.get_logger(__name__)

_LONGEST = 300
_HDR = {"smpte2084": "PQ (HDR10)", "arib-std-b67": "HLG"}

Facts = dict[str, Any]


def harmless(value: object) -> str:
    """Keep what people can read: no control characters, no marks that turn the direction of text."""
    return "".join(character for character in str(value or "") if character.isprintable())[:_LONGEST]


def _rate(value: object) -> str:
    return f"{value.get('num', 0)}/{value.get('den', 1)}" if isinstance(value, dict) else harmless(value)


Text = Annotated[str, BeforeValidator(harmless)]
Rate = Annotated[str, BeforeValidator(_rate)]


def _example(**fields: Any) -> ConfigDict:
    # Stored under the names of our messages, shown under those of the API.
    return ConfigDict(**example(**fields), populate_by_name=True)


VIDEO: Facts = {
    "codec": "hevc",
    "width": 1920,
    "height": 1080,
    "display_width": 1080,
    "display_height": 1920,
    "rotation": 90,
    "bit_depth": 10,
    "frame_rate": "30000/1001",
    "average_rate": "30000/1001",
    "frames": 600,
    "color_transfer": "smpte2084",
}
AUDIO: Facts = {"stream": 1, "codec": "aac", "channels": 2, "sample_rate": 48000, "language": "eng", "default": True}
SUBTITLES: Facts = {"stream": 2, "codec": "subrip", "language": "eng", "title": "Signs", "forced": True}
RENDITION: Facts = {
    "quality": "720p",
    "width": 720,
    "height": 1280,
    "codec": "h264",
    "encoder": "libx264",
    "bitrate": 2500,
    "ffmpeg": "8.1.2-8e2db5d4",
}
TRACK: Facts = {"name": "English", "language": "eng", "default": True}
DECIDED: Facts = {
    "frame_rate": "30000/1001",
    "frames": 600,
    "segment_seconds": 6.006,
    "tone_map": "zscale",
    "renditions": [RENDITION],
    "audio": [TRACK],
    "notes": ["HDR (smpte2084) is mapped to SDR with zscale."],
}


class FoundVideo(Answer):
    model_config = _example(**VIDEO)
    codec: Text
    width: int = Field(description="As stored; `display_width` and `display_height` are what a viewer sees")
    height: int
    display_width: int
    display_height: int
    rotation: int = Field(default=0, description="Degrees by which the file says to turn the picture")
    mirrored: bool = False
    sample_aspect: Text = "1:1"
    pixel_format: Text = ""
    bit_depth: int = 8
    field_order: Text = Field(default="progressive", description="`tt`, `bb`, `tb` and `bt` are interlaced")
    frame_rate: Rate = Field(description="Nominal, a fraction: 29.97 is `30000/1001`")
    average_rate: Rate
    variable_rate: bool = False
    frames: int = Field(validation_alias="packets", description="Counted, not declared")
    start: Text = Field(default="0", validation_alias="start_s", description="Seconds")
    color_primaries: Text = ""
    color_transfer: Text = ""
    color_space: Text = ""
    color_range: Text = ""


class FoundAudio(Answer):
    model_config = _example(**AUDIO)
    stream: int
    codec: Text
    channels: int
    layout: Text = ""
    sample_rate: int = 0
    language: Text = "und"
    title: Text = ""
    default: bool = False
    start: Text = Field(default="0", validation_alias="start_s", description="Seconds")
    end: float = Field(default=0.0, validation_alias="end_s", description="Seconds since the video's start")


class FoundSubtitles(Answer):
    model_config = _example(**SUBTITLES)
    stream: int
    codec: Text
    language: Text = "und"
    title: Text = ""
    default: bool = False
    forced: bool = False


class DecidedRendition(Answer):
    model_config = _example(**RENDITION)
    quality: Text
    width: int
    height: int
    codec: Text = "h264"
    encoder: Text = ""
    gpu: bool = Field(default=False, description="A GPU encodes it")
    descended: Text = Field(default="", description="Why no GPU encodes it although one was to")
    bitrate: int = Field(validation_alias="video_kbps", description="kbit/s, the cap")
    ffmpeg: Text = Field(default="", description="The build that makes it, and no other")


class DecidedTrack(Answer):
    model_config = _example(**TRACK)
    name: Text
    language: Text = "und"
    default: bool = False


class Decided(Answer):
    """The plan: made once, and kept to."""

    model_config = _example(**DECIDED)
    frame_rate: Rate
    frames: int
    segment_seconds: float
    deinterlaced: bool = False
    tone_map: Text | None = Field(default=None, description="How HDR became SDR; null when it was SDR")
    renditions: tuple[DecidedRendition, ...]
    skipped: tuple[Text, ...] = Field(default=(), description="Qualities larger than the source")
    audio: tuple[DecidedTrack, ...] = ()
    subtitles: tuple[DecidedTrack, ...] = ()
    notes: tuple[Text, ...] = Field(default=(), description="Choices worth telling a person")

    @classmethod
    def of(cls, plan: Facts, *, hdr: bool) -> Self:
        grid, encoding, pinned = plan["grid"], plan.get("encoding", {}), plan.get("ffmpeg", "")
        rate = grid["frame_rate"]
        renditions = [
            {**one, "ffmpeg": one.get("ffmpeg") or ("" if one.get("gpu") else pinned)}
            for one in plan.get("renditions", ())
        ]
        return cls.model_validate(
            {
                **{name: plan[name] for name in ("skipped", "audio", "subtitles", "notes") if name in plan},
                "frame_rate": rate,
                "frames": grid["frames"],
                "segment_seconds": round(grid["segment_frames"] * rate.get("den", 1) / rate["num"], 6),
                "deinterlaced": encoding.get("deinterlace", False),
                "tone_map": encoding.get("tone_map") if hdr else None,
                "renditions": renditions,
            }
        )


class Report(Answer):
    """What was found, and what was made of it."""

    model_config = _example(
        container="mpegts",
        remuxed_to="matroska",
        size_bytes=10485760,
        duration=20.02,
        video=VIDEO,
        hdr="PQ (HDR10)",
        audio=[AUDIO],
        subtitles=[SUBTITLES],
        warnings=["The file is cut short: 20.0 of 31.5 seconds are there, 11.52 s are lost."],
        decided=DECIDED,
    )
    container: Text
    remuxed_to: Text | None = Field(default=None, description="Where its packets were copied first, to seek well")
    size_bytes: int
    duration: float
    video: FoundVideo
    hdr: Text | None = Field(default=None, description="The kind of HDR; null for SDR")
    audio: tuple[FoundAudio, ...] = ()
    subtitles: tuple[FoundSubtitles, ...] = ()
    warnings: tuple[Text, ...] = ()
    decided: Decided | None = Field(default=None, description="Null until it was planned")

    @classmethod
    def of(cls, view: ReportView) -> Self | None:
        """Tell what is stored; what an older version stored otherwise is not worth an error."""
        try:
            return cls._of(view.facts, view.plan) if view.facts else None
        except (ValidationError, KeyError, TypeError, AttributeError, ZeroDivisionError) as error:
            log.warning("report_unreadable", error=type(error).__name__)
            return None

    @classmethod
    def _of(cls, facts: Facts, plan: Facts | None) -> Self:
        hdr = _HDR.get(facts["video"].get("color_transfer", ""))
        return cls.model_validate(
            {
                "container": facts["format_name"],
                "remuxed_to": facts.get("remuxed") or None,
                "duration": facts["duration_s"],
                **{name: facts[name] for name in ("size_bytes", "video")},
                **{name: facts[name] for name in ("audio", "subtitles", "warnings") if name in facts},
                "hdr": hdr,
                "decided": Decided.of(plan, hdr=hdr is not None) if plan else None,
            }
        )


class VideoDetail(Video):
    report: Report | None = Field(
        default=None, description="What was found and decided; null until the source was read"
    )
