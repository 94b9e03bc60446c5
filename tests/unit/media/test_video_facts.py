"""Orientation, crop and brightness out of ffprobe's side data."""

from fractions import Fraction
from typing import Any

import pytest

from contracts.media import VideoFacts
from media.describe import video_facts
from media.packets import PacketScan


def facts(*sides: dict[str, Any], **changes: Any) -> VideoFacts:
    pictures = PacketScan((Fraction(25),))
    for n in range(50):
        pictures.see(f"{n / 25:.6f},0.040000,K__")
    pictures.close()
    stream = {"index": 0, "codec_name": "h264", "width": 320, "height": 180, "r_frame_rate": "25/1", **changes}
    return video_facts({**stream, "side_data_list": list(sides)}, pictures, "mov,mp4")


def matrix(rotation: int, *numbers: int) -> dict[str, Any]:
    rows = [numbers[at : at + 3] for at in (0, 3, 6)]
    lines = "".join(f"\n0000000{n}: {' '.join(f'{value:11d}' for value in row)}" for n, row in enumerate(rows))
    return {"side_data_type": "Display Matrix", "displaymatrix": lines + "\n", "rotation": rotation}


ONE = 65536


@pytest.mark.parametrize(
    ("side", "rotation", "mirrored", "size"),
    [
        (matrix(0, ONE, 0, 0, 0, ONE, 0, 0, 0, 1 << 30), 0, False, (320, 180)),
        (matrix(-90, 0, ONE, 0, -ONE, 0, 0, 0, 0, 1 << 30), 270, False, (180, 320)),
        (matrix(-180, -ONE, 0, 0, 0, ONE, 0, 0, 0, 1 << 30), 180, True, (320, 180)),
        (matrix(-90, 0, ONE, 0, ONE, 0, 0, 0, 0, 1 << 30), 270, True, (180, 320)),
        # Held askew: the nearest quarter turn.
        ({"rotation": 87}, 90, False, (180, 320)),
        ({"rotation": 359, "displaymatrix": "nonsense"}, 0, False, (320, 180)),
    ],
)
def test_a_display_matrix_is_a_turn_and_perhaps_a_mirror(
    side: dict[str, Any], rotation: int, mirrored: bool, size: tuple[int, int]
) -> None:
    found = facts(side)
    assert (found.rotation, found.mirrored) == (rotation, mirrored)
    assert (found.display_width, found.display_height) == size


@pytest.mark.parametrize(
    ("edges", "crop", "size"),
    [
        ((8, 4, 12, 6), (8, 4, 12, 6), (300, 170)),
        ((160, 0, 160, 0), (0, 0, 0, 0), (320, 180)),  # nothing would be left
        ((-5, 0, 10, 0), (0, 0, 10, 0), (310, 180)),
    ],
)
def test_a_crop_is_taken_when_something_is_left(
    edges: tuple[int, ...], crop: tuple[int, ...], size: tuple[int, int]
) -> None:
    named = {f"crop_{edge}": value for edge, value in zip(("left", "top", "right", "bottom"), edges, strict=True)}
    found = facts({"side_data_type": "Frame Cropping", **named})
    assert found.crop == crop and (found.display_width, found.display_height) == size


@pytest.mark.parametrize(
    ("sides", "nits"),
    [
        ([{"max_luminance": "40000000/10000"}, {"max_content": 812, "max_average": 100}], 812),
        ([{"max_luminance": "10000000/10000"}, {"max_content": 0}], 1000),
        ([{"max_luminance": "nonsense/0"}], 0),
        ([], 0),
    ],
)
def test_the_brightest_light_is_what_is_there_else_what_the_screen_could_show(
    sides: list[dict[str, Any]], nits: float
) -> None:
    assert facts(*sides).peak_nits == nits
