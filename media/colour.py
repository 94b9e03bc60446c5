"""Colours: from whatever a source has to 8-bit BT.709, the one kind that every screen shows alike."""

from collections.abc import Iterator

from contracts.media import VideoFacts
from contracts.plan import Encoding, ToneMap
from media import tone

Filter = tuple[str, dict[str, str | int]]

WIDE_PRIMARIES = frozenset({"bt2020", "smpte431", "smpte432"})
BT709: dict[str, str | int] = {"color_primaries": "bt709", "color_trc": "bt709", "colorspace": "bt709", "range": "tv"}
_HIGH_DEFINITION = 720  # lines from which untagged pictures are meant as BT.709; below they are BT.601
_UNSAID = frozenset({"", "unknown", "unspecified"})


def readable(video: VideoFacts) -> Iterator[Filter]:
    """Give a matrix that scale does not know (`bt2020c`, mostly a mistake) the name of the likeliest it knows.

    ffmpeg 8 ends before the first picture of it. Matrices that are nothing like it are refused at the probe.
    """
    if video.color_space not in tone.MATRICES | _UNSAID and not is_rgb(video):
        yield "setparams", {"colorspace": likeliest_matrix(video)}


def to_bt709(video: VideoFacts, encoding: Encoding, width: int, height: int) -> Iterator[Filter]:
    """Scale, and bring every colour to BT.709 in limited range."""
    yield from readable(video)
    scale: dict[str, str | int] = {"w": width, "h": height, "flags": "bicubic"}
    if encoding.tone_map is not ToneMap.NONE:
        yield "scale", scale
        yield from tone.to_sdr(video, encoding.tone_map)
    else:
        tagged = video.color_space in tone.MATRICES or is_rgb(video)
        matrix = video.color_space if tagged else likeliest_matrix(video)
        if not tagged:
            # Only for these: scale follows the tags of each picture, should they change half-way.
            scale["in_color_matrix"] = matrix
        if video.pixel_format.startswith("yuvj"):
            scale["in_range"] = "full"
        if matrix != "bt709":
            # A new matrix goes through RGB; done in haste, that costs 5 of 255 instead of 2.
            scale["flags"] = "bicubic+accurate_rnd+full_chroma_int+full_chroma_inp"
        yield "scale", {**scale, "out_color_matrix": "bt709", "out_range": "limited"}
        if encoding.narrow_gamut:
            # More bits than the result has: rounding twice in 8 would show in the sky.
            yield "format", {"pix_fmts": "yuv420p10le"}
            meant = {"ispace": "bt709", "itrc": "bt709", "irange": "tv", "iprimaries": video.color_primaries}
            yield "colorspace", {**meant, "all": "bt709", "range": "tv", "format": "yuv420p"}
    # Tags only. Without them ffmpeg 7 and later would convert once more, from a matrix it has to guess.
    yield "setparams", dict(BT709)


def is_bt709(video: VideoFacts) -> bool:
    """Say whether the colours are BT.709's already, as far as anybody can tell."""
    matrix = likeliest_matrix(video) if video.color_space in _UNSAID else video.color_space
    return not is_rgb(video) and matrix == "bt709"


def is_rgb(video: VideoFacts) -> bool:
    return not video.pixel_format.startswith(("yuv", "nv", "p0", "p2", "y2", "uyvy", "xv", "gray", "ya"))


def likeliest_matrix(video: VideoFacts) -> str:
    """Guess the matrix that colours were made with from the size, as players do."""
    if video.color_space == "bt2020c" or video.color_transfer in tone.TRANSFERS:
        return "bt2020nc"
    return "bt709" if min(video.width, video.height) >= _HIGH_DEFINITION else "smpte170m"
