"""A chart whose pictures say who they are: a number, four corners, eight patches of colour.

Drawn and read in sixteenths of the width and ninths of the height, so that any size and shape can carry it.
Reading takes planes of 8-bit BT.709 4:2:0, which is what every rendition must be.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Colour = tuple[float, float, float]  # R'G'B', 0 to 255
Cell = tuple[int, int, int, int]  # column, row, width and height, on 16 x 9

_BITS = 8
_WHITE, _BLACK, _GROUND = (255, 255, 255), (0, 0, 0), (80, 80, 80)
# Each corner differs from each other in more than one channel: no turn or mirror looks like another.
CORNERS = {"red": (200, 30, 30), "green": (30, 160, 40), "blue": (40, 50, 200), "yellow": (210, 200, 40)}
UPRIGHT = tuple(CORNERS)  # top left, top right, bottom left, bottom right
# No extremes: a limiter at black or white would hide what a wrong matrix does.
PATCHES = (
    (128, 128, 128),
    (200, 200, 200),
    (48, 48, 48),
    (180, 60, 60),
    (60, 150, 70),
    (70, 80, 180),
    (205, 155, 125),
    (90, 170, 190),
)
_CORNER_CELLS: tuple[Cell, ...] = ((0, 0, 3, 2), (13, 0, 3, 2), (0, 7, 3, 2), (13, 7, 3, 2))
_PATCH_CELLS: tuple[Cell, ...] = tuple((2 * index, 4, 2, 3) for index in range(len(PATCHES)))
# Written twice, the second time inverted: a picture mixed of two numbers contradicts itself.
_BIT_CELLS: tuple[Cell, ...] = tuple((4 + index, 0, 1, 2) for index in range(_BITS))
_INVERTED_CELLS: tuple[Cell, ...] = tuple((4 + index, 2, 1, 2) for index in range(_BITS))
_MOST_OFF = 80  # a bit further than this from black and from white is neither


@dataclass(frozen=True)
class Picture:
    """One picture as it came out."""

    number: int | None  # None: two pictures in one
    corners: tuple[Colour, ...]
    patches: tuple[Colour, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Name the corners, read like text: `UPRIGHT` when nothing is turned or mirrored."""
        return tuple(min(CORNERS, key=lambda name: distance(seen, CORNERS[name])) for seen in self.corners)

    def off(self, patches: Sequence[Colour] = PATCHES) -> float:
        """Return the largest difference of any channel of any patch."""
        return max(distance(seen, meant) for seen, meant in zip(self.patches, patches, strict=True))


def distance(one: Colour, other: Colour) -> float:
    return max(abs(a - b) for a, b in zip(one, other, strict=True))


def draw(number: int, width: int, height: int, patches: Sequence[Colour] = PATCHES) -> bytes:
    """Draw one picture as packed R'G'B'."""
    cells: list[tuple[Cell, Colour]] = list(zip(_CORNER_CELLS, CORNERS.values(), strict=True))
    cells += zip(_PATCH_CELLS, patches, strict=True)
    for place in range(_BITS):
        # Gray's code: in the binary one the lowest bit follows the fields, and combs would look like a still picture.
        lit = bool((number ^ number >> 1) >> place & 1)
        cells.append((_BIT_CELLS[place], _WHITE if lit else _BLACK))
        cells.append((_INVERTED_CELLS[place], _BLACK if lit else _WHITE))
    rows = []
    for row in range(9):
        line = bytearray(bytes(_GROUND) * width)
        for (column, top, wide, high), colour in cells:
            if top <= row < top + high:
                left, right = column * width // 16, (column + wide) * width // 16
                line[3 * left : 3 * right] = bytes(round(value) for value in colour) * (right - left)
        rows.append(bytes(line) * ((row + 1) * height // 9 - row * height // 9))
    return b"".join(rows)


def read(planes: bytes, width: int, height: int) -> Iterator[Picture]:
    """Read every picture of raw yuv420p."""
    size = width * height * 3 // 2
    for at in range(0, len(planes) - size + 1, size):
        page = _Page(planes[at : at + size], width, height)
        yield Picture(
            number=page.number(),
            corners=tuple(page.colour(cell) for cell in _CORNER_CELLS),
            patches=tuple(page.colour(cell) for cell in _PATCH_CELLS),
        )


@dataclass(frozen=True)
class _Page:
    planes: bytes
    width: int
    height: int

    def colour(self, cell: Cell) -> Colour:
        luma = self._mean(cell, 0, self.width, self.height)
        chroma = self.width * self.height
        quarter = chroma // 4
        blue = self._mean(cell, chroma, self.width // 2, self.height // 2)
        red = self._mean(cell, chroma + quarter, self.width // 2, self.height // 2)
        return bt709(luma, blue, red)

    def number(self) -> int | None:
        number = 0
        for place in reversed(range(_BITS)):
            bit, inverted = (
                (self._mean(cells[place], 0, self.width, self.height) - 16) * 255 / 219
                for cells in (_BIT_CELLS, _INVERTED_CELLS)
            )
            if min(bit, 255 - bit) > _MOST_OFF or min(inverted, 255 - inverted) > _MOST_OFF:
                return None
            if (bit > 128) == (inverted > 128):
                return None
            number |= ((bit > 128) ^ (number >> place + 1 & 1)) << place
        return number

    def _mean(self, cell: Cell, start: int, width: int, height: int) -> float:
        """Average the middle of a cell: its edges are blurred by scaling and by halved chroma."""
        column, row, wide, high = cell
        left, right = int((column + wide * 0.3) * width / 16), int((column + wide * 0.7) * width / 16)
        top, bottom = int((row + high * 0.3) * height / 9), int((row + high * 0.7) * height / 9)
        right, bottom = max(right, left + 1), max(bottom, top + 1)
        total = sum(sum(self.planes[start + y * width + left : start + y * width + right]) for y in range(top, bottom))
        return total / ((right - left) * (bottom - top))


def bt709(luma: float, blue: float, red: float) -> Colour:
    """Turn limited-range BT.709 into R'G'B'."""
    y, b, r = (luma - 16) * 255 / 219, (blue - 128) * 255 / 224, (red - 128) * 255 / 224
    return y + 1.5748 * r, y - 0.1873 * b - 0.4681 * r, y + 1.8556 * b
