"""The filter graph of a transcode: one decode, the grid, and each rung scaled from the one above it.

Filters are named here as plain (name, options) pairs; `commands.py` turns them into a command line. Colours are in
`media/colour.py`.
"""

from collections.abc import Iterator
from fractions import Fraction

from contracts.media import VideoFacts
from contracts.plan import Encoding, Grid
from media import colour

Filter = tuple[str, dict[str, str | int]]

SOUND_MARGIN_S = 1  # sound may outlast the picture by this much before it is cut
# Their decoders say of each picture whether it is interlaced. Others are taken by the container's word.
_FLAGGED = frozenset({"h264", "mpeg2video", "vc1", "dvvideo", "prores"})
# What a display matrix asks for: (clockwise quarter turns, mirrored) to filters. As ffmpeg's own autorotation, which
# comes before everything else: there it would break fields apart and meet every change of size.
_TURNS: dict[tuple[int, bool], tuple[Filter, ...]] = {
    (0, False): (),
    (0, True): (("vflip", {}),),
    (90, False): (("transpose", {"dir": "clock"}),),
    (90, True): (("transpose", {"dir": "cclock_flip"}),),
    (180, False): (("hflip", {}), ("vflip", {})),
    (180, True): (("hflip", {}),),
    (270, False): (("transpose", {"dir": "cclock"}),),
    (270, True): (("transpose", {"dir": "clock_flip"}),),
}


def on_grid(
    video: VideoFacts,
    grid: Grid,
    first_frame: int,
    frames: int,
    encoding: Encoding,
    sought: bool = False,
    copies: int = 2,
) -> Iterator[Filter]:
    """Bring the source to exactly `frames` pictures of the grid, from `first_frame` on.

    `sought`: the reader has sought for them, else it reads from the source's start. `copies` of the last picture are
    there for those at the end that are missing.
    """
    if video.untimed:
        # Read from its start, one picture after the other: the times that ffmpeg guesses begin a few pictures late.
        # Rounded by hand, for setpts cuts off: 28 ticks may come out as 27.999.
        yield "setpts", {"expr": f"floor(N/({video.frame_rate})/TB+0.5)"}
    else:
        # Time 0 is the stream's own start. In seconds over TB: the filter's time base is not known here.
        # Rounded: the start is told in microseconds, and where a tick is a whole picture 1.99999 of them were 1.
        yield "setpts", {"expr": f"floor(PTS-({video.start_s}/TB){_off_the_edge(video, grid)}+0.5)"}
    if encoding.deinterlace:
        # Broadcasts change their size from programme to programme; bwdif reads beyond the end of a smaller picture. All
        # others pass untouched. Not `interl`: it writes beyond the end of some.
        yield from colour.readable(video)
        yield "scale", {"w": "iw", "h": "ih", "flags": "bicubic"}
        # Film in an interlaced stream is marked as whole pictures, and stays untouched.
        only = "interlaced" if video.codec in _FLAGGED else "all"
        yield "bwdif", {"mode": "send_field" if encoding.field_rate else "send_frame", "deint": only}
    # pass: a last picture that is said to be shorter than half a tick is shown all the same, for a tick.
    rate: dict[str, str | int] = {"fps": str(grid.frame_rate), "round": "near", "eof_action": "pass"}
    if not sought:
        # Fill from 0 when the first picture comes late, perhaps in a later segment than this one begins with. After a
        # seek this would fill from 0 as well, and hide one that went astray.
        rate["start_time"] = 0
    yield "fps", rate
    # Cut off again when they are not needed.
    yield "tpad", {"stop_mode": "clone", "stop": copies}
    # By pictures, never by seconds: at half a picture seconds round either way.
    yield "trim", {"start_pts": first_frame, "end_pts": first_frame + frames}


def _off_the_edge(video: VideoFacts, grid: Grid) -> str:
    """Show pictures that are thinned half a picture later, and so none of them on the edge between two ticks.

    At twice the grid's rate every other one lies there; by a clock that counts milliseconds now on this side, now on
    that one, and what is left would stutter.
    """
    rate = video.frame_rate.fraction
    if video.variable_rate or rate < 2 * grid.frame_rate.fraction:
        return ""
    half = 1 / (2 * rate)
    return f"+({half.numerator}/{half.denominator}/TB)"


def uncovered(video: VideoFacts) -> Iterator[Filter]:
    """Cut away what the container hides, unless this build of ffmpeg has done so already (7.1 and later do)."""
    left, top, right, bottom = video.crop
    if any(video.crop):
        width, height = video.width - left - right, video.height - top - bottom
        whole = f"eq(iw,{video.width})*eq(ih,{video.height})"
        # exact: a crop by odd numbers moves chroma by half a sample; rounding it would move everything.
        yield "crop", {"w": width, "h": height, "x": f"{left}*{whole}", "y": f"{top}*{whole}", "exact": 1}


def to_largest(video: VideoFacts, encoding: Encoding, width: int, height: int) -> Iterator[Filter]:
    """Scale to the largest rung of the list, upright, in 8-bit BT.709 with square pixels."""
    # The picture is turned when it is small. `scale` follows a source that changes its size half-way, others do not.
    lying = (height, width) if video.rotation in (90, 270) else (width, height)
    yield from colour.to_bt709(video, encoding, *lying)
    yield from _TURNS[-video.rotation % 360, video.mirrored]
    yield "setsar", {"sar": "1"}
    # 4:2:0 in 8 bits: the one layout that every browser decodes.
    yield "format", {"pix_fmts": "yuv420p"}


def to_smaller(width: int, height: int) -> Iterator[Filter]:
    """Scale to the next rung from the one above: half the work of scaling from the source."""
    yield "scale", {"w": width, "h": height, "flags": "bicubic"}
    # Rungs are rounded to even sizes, so their shapes differ by a hair and scale would write that down as a ratio.
    yield "setsar", {"sar": "1"}


def keeps_its_graph(video: VideoFacts) -> bool:
    """Say whether pictures that change in size or kind half-way may enter the graph that is already laid.

    The grid cannot be laid anew: it would count from 0 again. `scale` looks at each picture's own size; what ffmpeg
    crops by itself (8.1) it would crop beyond the end of a smaller one.
    """
    return not any(video.crop)


def segment_seconds(grid: Grid) -> Fraction:
    return grid.segment_frames / grid.frame_rate.fraction
