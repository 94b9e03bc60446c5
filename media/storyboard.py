"""How a storyboard is laid out: how often a tile, how many on a sheet, and which is shown when. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from contracts.layout import sheet_name
from contracts.media import VideoFacts

TILE_WIDTH = 160
_TALLEST = 320  # a very tall picture gets narrower tiles instead of endless sheets
SIDE = 10  # tiles per row and rows per sheet
_MOST_TILES = 10_000  # a week of surveillance film gets a longer interval

# Up to how many seconds of video which interval; beyond the last, ten seconds.
_INTERVALS_S = ((120, 1), (300, 2), (3600, 5))
_LONG_INTERVAL_S = 10


@dataclass(frozen=True)
class Cue:
    """One tile and the time it stands for, in milliseconds."""

    start_ms: int
    end_ms: int
    sheet: int
    x: int
    y: int


@dataclass(frozen=True)
class Storyboard:
    duration_ms: int
    interval_s: int
    tile_width: int
    tile_height: int

    @property
    def tiles(self) -> int:
        return ceil(self.duration_ms / (1000 * self.interval_s))

    @property
    def columns(self) -> int:
        return min(SIDE, self.tiles)

    @property
    def rows(self) -> int:
        """A single sheet ends with its last row; of several all have the same size."""
        return min(SIDE, ceil(self.tiles / SIDE))

    @property
    def sheets(self) -> int:
        return ceil(self.tiles / (self.columns * self.rows))

    def cues(self) -> Iterator[Cue]:
        """Say what is shown when: every moment of the video exactly once."""
        step_ms = 1000 * self.interval_s
        for tile in range(self.tiles):
            sheet, place = divmod(tile, self.columns * self.rows)
            row, column = divmod(place, self.columns)
            end_ms = min((tile + 1) * step_ms, self.duration_ms)
            yield Cue(tile * step_ms, end_ms, sheet, column * self.tile_width, row * self.tile_height)

    def webvtt(self) -> str:
        """Write the cues down as players read them; addresses are relative to the file's own."""
        size = f"{self.tile_width},{self.tile_height}"
        cues = (
            f"{_clock(cue.start_ms)} --> {_clock(cue.end_ms)}\n{sheet_name(cue.sheet)}#xywh={cue.x},{cue.y},{size}\n"
            for cue in self.cues()
        )
        return "\n".join(("WEBVTT\n", *cues))


def lay_out(video: VideoFacts, duration_s: float) -> Storyboard:
    """Choose interval and tiles for a video of this length and shape."""
    interval_s = next((step for limit, step in _INTERVALS_S if duration_s <= limit), _LONG_INTERVAL_S)
    width, height = tile_size(video.display_width, video.display_height)
    return Storyboard(
        # Rounded up: the last cue must not end before the video does. Float noise is not a millisecond.
        duration_ms=max(1, ceil(round(duration_s * 1000, 3))),
        interval_s=max(interval_s, ceil(duration_s / _MOST_TILES)),
        tile_width=width,
        tile_height=height,
    )


def tile_size(width: int, height: int) -> tuple[int, int]:
    """Fit a picture into a tile: even sides, the shape kept, never larger than the picture."""
    scale = min(1.0, TILE_WIDTH / width, _TALLEST / height)
    return _even(width * scale), _even(height * scale)


def _even(length: float) -> int:
    return max(2, round(length / 2) * 2)


def _clock(ms: int) -> str:
    seconds, ms = divmod(ms, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02d}:{minutes:02d}:{seconds:02d}.{ms:03d}"
