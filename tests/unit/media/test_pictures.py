"""Of several pictures the one that shows most is chosen."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from contracts.plan import Encoding
from contracts.steps import MakeThumbnail
from media.picture_commands import candidate
from media.pictures import Gray, Look, best, look_at
from tests.support.encoding import IDS
from tests.support.media_facts import tool, video

WIDTH, HEIGHT = 160, 90


def drawn(brightness: Callable[[int, int], float]) -> Gray:
    pixels = bytes(max(0, min(255, round(brightness(x, y)))) for y in range(HEIGHT) for x in range(WIDTH))
    return Gray(WIDTH, HEIGHT, pixels)


def blurred(picture: Gray, reach: int) -> Gray:
    """Average over a square, as a lens out of focus does."""

    def around(x: int, y: int) -> float:
        xs = range(max(0, x - reach), min(WIDTH, x + reach + 1))
        ys = range(max(0, y - reach), min(HEIGHT, y + reach + 1))
        return sum(picture.pixels[b * WIDTH + a] for b in ys for a in xs) / (len(xs) * len(ys))

    return drawn(around)


def scene(x: int, y: int) -> float:
    """A house on a hill, say: areas with edges between them."""
    return 70 + 90 * (40 < x < 90 and 30 < y < 70) + 50 * ((x // 20 + y // 15) % 2)


def noise(seed: int, mean: float, strength: float) -> Gray:
    dice = random.Random(seed)
    return drawn(lambda x, y: mean + dice.uniform(-strength, strength))


SHARP = drawn(scene)
BLACK = drawn(lambda x, y: 0)
WHITE = drawn(lambda x, y: 255)
FLAT = drawn(lambda x, y: 120)
DARK_NOISE = noise(1, 10, 9)
DARKENED = drawn(lambda x, y: scene(x, y) / 8)
BLURRED = blurred(SHARP, 3)


@pytest.mark.parametrize("worse", [BLACK, WHITE, FLAT, DARK_NOISE, DARKENED, BLURRED], ids=str)
def test_a_sharp_picture_beats_a_bad_one(worse: Gray) -> None:
    assert best([look_at(worse), look_at(SHARP)]) == 1


@pytest.mark.parametrize("nothing", [BLACK, WHITE, FLAT, DARK_NOISE])
def test_a_blurred_picture_beats_one_that_shows_nothing(nothing: Gray) -> None:
    assert best([look_at(nothing), look_at(BLURRED)]) == 1
    assert look_at(BLURRED).shows_something and not look_at(nothing).shows_something


def test_more_blur_is_worse() -> None:
    scores = [look_at(picture).score for picture in (SHARP, blurred(SHARP, 1), blurred(SHARP, 3), blurred(SHARP, 6))]
    assert scores == sorted(scores, reverse=True) and len(set(scores)) == 4
    assert best([Look(120, 60, 3), Look(120, 60, 30)]) == 1, "of equal contrast the one with edges"


def test_of_bad_pictures_the_least_bad_and_of_equals_the_first_is_chosen() -> None:
    assert best([look_at(BLACK), look_at(DARKENED), look_at(BLACK)]) == 1
    assert best([look_at(BLACK), look_at(BLACK)]) == 0


def test_a_single_pixel_is_a_picture() -> None:
    assert look_at(Gray(1, 1, b"\x80")) == Look(128, 0, 0)
    with pytest.raises(ValueError, match="as many pixels"):
        Gray(2, 2, b"\0")


def test_a_candidate_decodes_keyframes_only() -> None:
    wanted = MakeThumbnail(**IDS, slug="a", video=video(start_s="2.000000"), encoding=Encoding())
    files = Path("/data/in.mp4"), Path("/scratch/t.jpg"), Path("/scratch/t.gray")
    argv = candidate(tool(), *files, wanted, at_s=4)
    assert argv[argv.index("-skip_frame") + 1] == "nokey" and argv[argv.index("-ss") + 1] == "6.000"
    words = argv[argv.index("-filter_complex") + 1]
    assert (
        "h=360:out_color_matrix=bt709:out_range=limited:w=640" in words
        and "h=180:out_range=full:w=320" in words
        and words.count("split") == 1
    )
    exact = candidate(tool(), *files, wanted, at_s=0, only_keyframes=False)
    assert "-skip_frame" not in exact and "-noaccurate_seek" not in exact and "-ss" not in exact
