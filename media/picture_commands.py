"""Command lines for single pictures: candidates for the thumbnail, sheets of the storyboard."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from contracts.media import VideoFacts
from contracts.plan import Encoding
from contracts.steps import MakeStoryboard, MakeThumbnail
from media import commands, filters
from media.storyboard import Storyboard
from media.tools import Ffmpeg

THUMBNAIL_WIDTH = 640
_LOOK_WIDTH = 320  # half the thumbnail: small enough for plain Python, large enough that blur still shows

# JPEG is full range BT.601 by definition.
_TO_JPEG: tuple[filters.Filter, ...] = (
    ("scale", {"in_color_matrix": "bt709", "out_color_matrix": "bt601", "out_range": "full"}),
    ("format", {"pix_fmts": "yuvj420p"}),
)


def candidate(
    tool: Ffmpeg,
    source: Path,
    picture: Path,
    look: Path,
    request: MakeThumbnail,
    *,
    at_s: float,
    only_keyframes: bool = True,
) -> list[str]:
    """Take the picture at `at_s` since the video's start: as a JPEG, and small and gray to judge it by.

    With `only_keyframes` it is a keyframe near that moment. Past the last picture no file is written.
    """
    video = request.video
    reading: dict[str, Any] = {}
    if only_keyframes:
        # A twentieth of the work of decoding up to the wish.
        reading |= {"skip_frame": "nokey", "noaccurate_seek": None}
    if at_s > 0:
        # Even where a seek cannot be trusted to be exact: any picture from thereabouts will do.
        reading |= {"seek_timestamp": 1, "ss": f"{float(Fraction(video.start_s)) + at_s:.3f}"}
    width, height = _fitted(video, THUMBNAIL_WIDTH)
    steps = [
        *filters.uncovered(video),
        *_one_field(tool, request.encoding),
        *filters.to_largest(video, request.encoding, width, height),
    ]
    looked_w, looked_h = look_size(video)
    glance: tuple[filters.Filter, ...] = (
        ("scale", {"w": looked_w, "h": looked_h, "flags": "area", "out_range": "full"}),
        ("format", {"pix_fmts": "gray"}),
    )
    jpeg = {"c:v": "mjpeg", "q:v": 3, "frames:v": 1, "f": "image2", "update": 1}
    raw = {"c:v": "rawvideo", "frames:v": 1, "f": "rawvideo"}
    outputs = [(_TO_JPEG, str(picture), jpeg), (glance, str(look), raw)]
    return commands.pictures(tool, source, video.stream, reading, steps, outputs)


def look_size(video: VideoFacts) -> tuple[int, int]:
    return _fitted(video, _LOOK_WIDTH)


def storyboard(
    tool: Ffmpeg,
    source: Path,
    folder: Path,
    request: MakeStoryboard,
    board: Storyboard,
    *,
    only_keyframes: bool = True,
) -> list[str]:
    """Write all sheets, `storyboard_000.jpg` and on, into `folder`.

    A tile shows the last decoded picture before the middle of its cue; with sparse keyframes tiles repeat.
    """
    video = request.video
    # Where keyframes are too far apart, at least what no other picture needs is left out.
    reading = {"skip_frame": "nokey" if only_keyframes else "noref", "copyts": None}
    steps: list[filters.Filter] = [
        # Time 0 is the stream's own start, as for every rendition; half an interval later, for the middle of a cue.
        ("setpts", {"expr": f"PTS-({video.start_s}/TB)+({board.interval_s}/2/TB)"}),
        # One picture per interval from 0 on. `down` with `pass`, as `near` would swallow the last keyframe: to the
        # filter the video ends there.
        ("fps", {"fps": f"1/{board.interval_s}", "round": "down", "start_time": 0, "eof_action": "pass"}),
        *filters.uncovered(video),
        *_one_field(tool, request.encoding),
        *filters.to_largest(video, request.encoding, board.tile_width, board.tile_height),
        # The last keyframe stands for all that follows it, up to exactly the tiles that the cues name.
        ("tpad", {"stop_mode": "clone", "stop": board.tiles}),
        ("trim", {"end_frame": board.tiles}),
        ("tile", {"layout": f"{board.columns}x{board.rows}"}),
        *_TO_JPEG,
    ]
    # Per cent signs of the folder are not part of the pattern.
    pattern = f"{str(folder).replace('%', '%%')}/storyboard_%03d.jpg"
    jpeg = {"c:v": "mjpeg", "q:v": 5, "frames:v": board.sheets, "f": "image2", "start_number": 0}
    return commands.pictures(tool, source, video.stream, reading, steps, [((), pattern, jpeg)])


def _one_field(tool: Ffmpeg, encoding: Encoding) -> Iterator[filters.Filter]:
    """Keep every other line of an interlaced picture: its neighbours in time are not at hand to mend it with."""
    if encoding.deinterlace and "field" in tool.filters:
        yield "field", {"type": "top"}


def _fitted(video: VideoFacts, widest: int) -> tuple[int, int]:
    width = min(widest, video.display_width // 2 * 2 or 2)
    return width, max(2, round(width * video.display_height / video.display_width / 2) * 2)
