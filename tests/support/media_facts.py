"""Facts about videos that do not exist, for tests that need no file."""

from pathlib import Path
from typing import Any

from contracts.media import AudioFacts, FrameRate, SourceFacts, VideoFacts
from contracts.plan import Encoding, Grid
from media.choosing import filters_needed, sound_filters_needed
from media.tools import Ffmpeg, Toolbox


def tool(name: str = "first", **capabilities: frozenset[str]) -> Ffmpeg:
    """A build that does not exist: it has what every build has, and these capabilities."""
    has: dict[str, frozenset[str]] = {
        "encoders": frozenset({"libx264", "aac", "mjpeg"}),
        "decoders": frozenset({"h264", "hevc", "aac"}),
        "filters": frozenset({"scale", "blackframe", "metadata"}),
        "demuxers": frozenset({"mov", "mp4"}),
        **capabilities,
    }
    has["filters"] |= plain_filters()
    return Ffmpeg(Path(f"/opt/{name}/ffmpeg"), Path(f"/opt/{name}/ffprobe"), "8.1", f"8.1-{name}", name, **has)


def plain_filters() -> frozenset[str]:
    """What any video may need but the mapping of HDR: filters that come with every ffmpeg."""
    grid = Grid(frame_rate=FrameRate(num=30), frames=1, segment_frames=1)
    seen = filters_needed(video(), grid, Encoding(deinterlace=True)) | {"sidedata"}
    return seen | sound_filters_needed(track(channels=6, layout="5.1"))


def toolbox(*tools: Ffmpeg) -> Toolbox:
    return Toolbox(tools or (tool(),))


def video(width: int = 1920, height: int = 1080, **changes: Any) -> VideoFacts:
    values: dict[str, Any] = {
        "stream": 0,
        "codec": "h264",
        "width": width,
        "height": height,
        "display_width": width,
        "display_height": height,
        "pixel_format": "yuv420p",
        "color_space": "bt709",
        "frame_rate": FrameRate(num=30),
        "average_rate": FrameRate(num=30),
        "packets": 600,
        "end_s": 20.0,
    }
    return VideoFacts(**{**values, **changes})


def source(picture: VideoFacts | None = None, *audio: AudioFacts) -> SourceFacts:
    return SourceFacts(format_name="mov,mp4", size_bytes=1, duration_s=20.0, video=picture or video(), audio=audio)


def track(stream: int = 1, **changes: Any) -> AudioFacts:
    return AudioFacts(**{"stream": stream, "codec": "aac", "channels": 2, "sample_rate": 48000, **changes})
