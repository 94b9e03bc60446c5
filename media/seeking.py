"""Where a run begins to read a source, and how long a lost end it makes up for.

A seek lands on what the container calls a keyframe. Nothing can be shown from there on when that is damaged, or when
the container goes by the order of decoding and the keyframe is shown later than wished. Reading from further ahead
finds the picture that stands there.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from contracts.media import VideoFacts
from contracts.plan import Grid

_MARGIN_S = 1.0  # deinterlacing and the grid want some pictures before the first one that counts
_BEYOND_LAG_S = 0.5
_MOST_LAG_S = 10.0  # one still of an hour must not make every span decode an hour more: what is rare is read again
_FAR_S = 10.0


@dataclass(frozen=True)
class Reach:
    """How far beyond its own pictures a run looks."""

    before_s: float | None  # it begins to read so long before the first; None: at the source's start
    after: int  # so many copies of the last picture that can be decoded stand in for those that cannot


def near(video: VideoFacts, grid: Grid) -> Reach:
    """Look no further than sources need whose pictures are all there.

    The last picture's length is a guess in many containers: the grid may come out one short. And where a file was cut
    off, pictures at the end lack those they are made from. A second of copies makes the count certain.
    """
    lag_s = min(video.keyframe_lag_s, _MOST_LAG_S)
    return Reach(max(_MARGIN_S, lag_s + _BEYOND_LAG_S), max(2, round(grid.frame_rate.fraction)))


def reaches(video: VideoFacts, grid: Grid, least_share: float) -> Iterator[Reach]:
    """Give the ways to read what a span is made of, the cheapest first.

    One that gives too few pictures is followed by the next: a keyframe or two further ahead, then all of the source.
    Of the end no more is made up for than a file may lack (`VLOG_LEAST_COMPLETE`), nor more than a keyframe or two.
    """
    yield (usual := near(video, grid))
    far_s = _FAR_S + 2 * max(0.0, video.keyframe_gap_s)
    lost = min(round(grid.frames * (1 - least_share)), round(far_s * grid.frame_rate.fraction))
    yield Reach(far_s, max(usual.after, lost))
    yield Reach(None, max(usual.after, lost))


def begins_at(video: VideoFacts, grid: Grid, first_frame: int, reach: Reach) -> Fraction | None:
    """Tell the time to seek to, as the video counts; None: the source is read from its start."""
    if reach.before_s is None or not video.seekable:
        return None
    at = Fraction(first_frame) / grid.frame_rate.fraction - Fraction(reach.before_s)
    # Where no keyframe comes before the wish, as in what a call or a camera began to record halfway, a seek fails or
    # lands behind it.
    return at if at > video.first_keyframe_s else None


def options(video: VideoFacts, at: Fraction | None) -> dict[str, Any]:
    """Say to ffmpeg where to begin."""
    # Timestamps stay as they are in the file: the grid is counted from the stream's start, wherever we begin.
    timing: dict[str, Any] = {"copyts": None}
    if at is not None:
        timing |= {
            "ss": f"{float(Fraction(video.start_s) + at):.6f}",
            # -ss counts from the file's start unless told that it is a time stamp.
            "seek_timestamp": 1,
            # The trim filter cuts exactly; ffmpeg's own cut adds the start time twice and leaves nothing.
            "noaccurate_seek": None,
        }
    return timing
