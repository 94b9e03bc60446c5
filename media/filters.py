"""The filter graph of a transcode: one decode, the grid, and each rung scaled from the one above it.

Filters are named here as plain (name, options) pairs; `commands.py` turns them into a command line.
"""

from collections.abc import Iterator
from fractions import Fraction

from contracts.media import Encoding, Grid, ToneMap, VideoFacts

Filter = tuple[str, dict[str, str | int]]

SOUND_MARGIN_S = 1  # sound may outlast the picture by this much before it is cut
_BT709 = {"color_primaries": "bt709", "color_trc": "bt709", "colorspace": "bt709", "range": "tv"}
_HIGH_DEFINITION = 720  # lines from which untagged pictures are meant as BT.709; below they are BT.601
# scale's names for the matrices that ffprobe names; what is not here is left to scale.
_MATRICES = {"smpte170m": "smpte170m", "bt470bg": "bt470", "fcc": "fcc", "smpte240m": "smpte240m", "bt2020nc": "bt2020"}


def on_grid(video: VideoFacts, grid: Grid, first_frame: int, frames: int, *, deinterlace: bool) -> Iterator[Filter]:
    """Bring the source to exactly `frames` pictures of the grid, from `first_frame` on."""
    # Time 0 is the stream's own start. In seconds over TB: the filter's time base is not known here.
    yield "setpts", {"expr": f"PTS-({video.start_s}/TB)"}
    if deinterlace:
        # One picture per frame, not per field: the grid keeps the source's rate.
        yield "bwdif", {"mode": "send_frame", "deint": "all"}
    rate: dict[str, str | int] = {"fps": str(grid.frame_rate), "round": "near"}
    if first_frame == 0:
        # Fill from 0 when the first picture comes late. After a seek this would fill from 0 as well.
        rate["start_time"] = 0
    yield "fps", rate
    # The last picture's length is a guess in many containers: the grid may come out one short. Two spare copies
    # of the last picture, cut off again when they are not needed, make the count certain.
    yield "tpad", {"stop_mode": "clone", "stop": 2}
    # By pictures, never by seconds: at half a picture seconds round either way.
    yield "trim", {"start_pts": first_frame, "end_pts": first_frame + frames}


def to_largest(video: VideoFacts, encoding: Encoding, width: int, height: int) -> Iterator[Filter]:
    """Scale to the largest rung of the list, in 8-bit BT.709 with square pixels."""
    matrix = _matrix(video)
    scale: dict[str, str | int] = {"w": width, "h": height, "flags": "bicubic"}
    if encoding.tone_map is ToneMap.ZSCALE:
        yield "scale", scale
        yield from _tone_map(video)
    elif encoding.tone_map is ToneMap.SCALE:
        # The best that a build without zscale can do.
        wide = {"out_transfer": "bt709", "out_primaries": "bt709", "out_color_matrix": "bt709", "intent": "perceptual"}
        yield "scale", {**scale, **wide, "out_range": "tv"}
    else:
        if matrix != "bt709" and video.pixel_format.startswith("yuv"):
            scale |= {"in_color_matrix": matrix, "out_color_matrix": "bt709"}
        elif not video.pixel_format.startswith("yuv"):
            scale["out_color_matrix"] = "bt709"
        if video.color_range == "pc" or video.pixel_format.startswith("yuvj"):
            scale |= {"in_range": "full", "out_range": "limited"}
        yield "scale", scale
    # Tags only. Without them ffmpeg 7 and later would convert once more, from a matrix it has to guess.
    yield "setparams", dict(_BT709)
    yield "setsar", {"sar": "1"}
    # 4:2:0 in 8 bits: the one layout that every browser decodes.
    yield "format", {"pix_fmts": "yuv420p"}


def to_smaller(width: int, height: int) -> Iterator[Filter]:
    """Scale to the next rung from the one above: half the work of scaling from the source."""
    yield "scale", {"w": width, "h": height, "flags": "bicubic"}
    # Rungs are rounded to even sizes, so their shapes differ by a hair and scale would write that down as a ratio.
    yield "setsar", {"sar": "1"}


def _tone_map(video: VideoFacts) -> Iterator[Filter]:
    # 203 cd/m² is where PQ and HLG put the white of a sheet of paper (BT.2408): it becomes SDR's white.
    yield (
        "zscale",
        {
            "tin": video.color_transfer,
            "pin": video.color_primaries or "bt2020",
            "min": video.color_space or "bt2020nc",
            "t": "linear",
            "npl": 203,
        },
    )
    yield "format", {"pix_fmts": "gbrpf32le"}
    yield "zscale", {"p": "bt709"}
    # Mobius leaves what SDR can show untouched and bends only the highlights; hable darkens everything.
    yield "tonemap", {"tonemap": "mobius", "desat": 0}
    yield "zscale", {"t": "bt709", "m": "bt709", "r": "tv"}


def _matrix(video: VideoFacts) -> str:
    """Name the matrix the colours were made with; the untagged ones by their size, as players do."""
    if video.color_space in ("bt709", "gbr"):
        return "bt709"
    if known := _MATRICES.get(video.color_space):
        return known
    return "bt709" if min(video.width, video.height) >= _HIGH_DEFINITION else "smpte170m"


def segment_seconds(grid: Grid) -> Fraction:
    return grid.segment_frames / grid.frame_rate.fraction
