"""Which of several pictures stands best for a video. Pure: small gray pictures in, numbers out."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

# Mean brightness, 0 to 255: worthless up to the first, fine from the second to the third, worthless from the fourth.
_DARK, _DIM, _BRIGHT, _WHITE = 16.0, 48.0, 208.0, 244.0
_CONTRAST = 40.0  # a spread from which more makes a picture no better
_EDGES = 12.0  # edges of this strength are worth half of the sharpest picture's
_ABOUT_EQUAL = 0.9
_FLOOR = 0.01  # of bad pictures one is still the least bad


@dataclass(frozen=True)
class Gray:
    """Brightness from 0 to 255, row by row."""

    width: int
    height: int
    pixels: bytes

    def __post_init__(self) -> None:
        if len(self.pixels) != self.width * self.height:
            raise ValueError("a picture has as many pixels as its size says")


@dataclass(frozen=True)
class Look:
    """What a glance at a picture says."""

    brightness: float  # mean
    contrast: float  # standard deviation
    edges: float  # standard deviation of the Laplacian: blur takes it away first

    @property
    def score(self) -> float:
        """Weigh it all; higher is better, 1 is never reached."""
        seen = max(_FLOOR, self.exposure) * max(_FLOOR, min(1.0, self.contrast / _CONTRAST))
        return seen * max(_FLOOR, self.edges / (self.edges + _EDGES))

    @property
    def exposure(self) -> float:
        rising = (self.brightness - _DARK) / (_DIM - _DARK)
        falling = (_WHITE - self.brightness) / (_WHITE - _BRIGHT)
        return max(0.0, min(1.0, rising, falling))

    @property
    def shows_something(self) -> bool:
        """Tell a picture worth keeping from a black, white or flat one."""
        return self.exposure > 0.1 and self.contrast > 6


def look_at(picture: Gray) -> Look:
    """Measure one picture; a few hundred pixels wide is enough, and a hundredth of a second."""
    pixels, width = picture.pixels, picture.width
    brightness, contrast = _spread(pixels)
    edges: list[int] = []
    for start in range(width, len(pixels) - width, width):
        above, row, below = (pixels[at : at + width] for at in (start - width, start, start + width))
        edges += [
            4 * here - left - right - up - down
            for here, left, right, up, down in zip(row[1:-1], row[:-2], row[2:], above[1:-1], below[1:-1], strict=True)
        ]
    return Look(brightness, contrast, _spread(edges)[1])


def best(looks: Sequence[Look]) -> int:
    """Name the place of the best; of about equals the first, which gives least of the story away."""
    enough = _ABOUT_EQUAL * max(look.score for look in looks)
    return next(place for place, look in enumerate(looks) if look.score >= enough)


def _spread(values: Sequence[int]) -> tuple[float, float]:
    if not values:
        return 0.0, 0.0
    mean = sum(values) / len(values)
    return mean, sqrt(max(0.0, sum(value * value for value in values) / len(values) - mean * mean))
