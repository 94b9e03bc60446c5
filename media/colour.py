"""Colours: from whatever a source has to 8-bit BT.709, the one kind that every screen shows alike."""

from collections.abc import Iterator

from contracts.media import Encoding, ToneMap, VideoFacts

Filter = tuple[str, dict[str, str | int]]

HDR_TRANSFERS = frozenset({"smpte2084", "arib-std-b67"})
WIDE_PRIMARIES = frozenset({"bt2020", "smpte431", "smpte432"})
# Where PQ and HLG put the white of a sheet of paper, in cd/m² (BT.2408): it becomes nearly the white of SDR.
PAPER_NITS = 203
# What grading monitors reach and HLG is meant for: the brightest light of a video that does not say.
USUAL_PEAK_NITS = 1000
_BRIGHTEST_NITS = 4000  # beyond it masters say what the format could hold, not what is there
# Up to this share of paper white the tone curve changes nothing; above it makes room for what is brighter.
KNEE = 0.7
_BT709 = {"color_primaries": "bt709", "color_trc": "bt709", "colorspace": "bt709", "range": "tv"}
_HIGH_DEFINITION = 720  # lines from which untagged pictures are meant as BT.709; below they are BT.601
# The matrices that scale reads from each picture itself; `gbr` is none.
_READ_BY_SCALE = frozenset({"bt709", "gbr", "smpte170m", "bt470bg", "fcc", "smpte240m", "bt2020nc"})
_HDR_SIDE_DATA = ("MASTERING_DISPLAY_METADATA", "CONTENT_LIGHT_LEVEL", "DYNAMIC_HDR_PLUS")


def to_bt709(video: VideoFacts, encoding: Encoding, width: int, height: int) -> Iterator[Filter]:
    """Scale, and bring every colour to BT.709 in limited range."""
    scale: dict[str, str | int] = {"w": width, "h": height, "flags": "bicubic"}
    if encoding.tone_map is ToneMap.ZSCALE:
        yield "scale", scale
        yield from _tone_map(video)
    elif encoding.tone_map is ToneMap.SCALE:
        # The best that a build without zscale can do.
        wide = {"out_transfer": "bt709", "out_primaries": "bt709", "out_color_matrix": "bt709", "intent": "perceptual"}
        yield "scale", {**scale, **wide, "out_range": "limited"}
    else:
        # No input matrix for tagged pictures: scale then follows the tags of each one, should they change half-way.
        if video.color_space not in _READ_BY_SCALE and not is_rgb(video):
            scale["in_color_matrix"] = untagged_matrix(video)
        if video.pixel_format.startswith("yuvj"):
            scale["in_range"] = "full"
        yield "scale", {**scale, "out_color_matrix": "bt709", "out_range": "limited"}
        if encoding.narrow_gamut:
            # More bits than the result has: rounding twice in 8 would show in the sky.
            yield "format", {"pix_fmts": "yuv420p10le"}
            meant = {"ispace": "bt709", "itrc": "bt709", "irange": "tv", "iprimaries": video.color_primaries}
            yield "colorspace", {**meant, "all": "bt709", "range": "tv", "format": "yuv420p"}
    if video.color_transfer in HDR_TRANSFERS:
        # What a master says of its light is no longer true of these pictures.
        for kind in _HDR_SIDE_DATA:
            yield "sidedata", {"mode": "delete", "type": kind}
    # Tags only. Without them ffmpeg 7 and later would convert once more, from a matrix it has to guess.
    yield "setparams", dict(_BT709)


def _tone_map(video: VideoFacts) -> Iterator[Filter]:
    meant = {
        "tin": video.color_transfer,
        "pin": _or(video.color_primaries, "bt2020"),
        "min": _or(video.color_space, "bt2020nc"),
        "rin": "full" if video.color_range == "pc" else "limited",
    }
    yield "zscale", {**meant, "t": "linear", "npl": PAPER_NITS}
    yield "format", {"pix_fmts": "gbrpf32le"}
    yield "zscale", {"p": "bt709"}
    # Mobius leaves what SDR can show untouched and bends only the highlights; hable darkens everything. The filter
    # would take the peak from the file too, but in units of 100 cd/m², which is not our white.
    yield "tonemap", {"tonemap": "mobius", "param": str(KNEE), "desat": 0, "peak": f"{peak(video):.3f}"}
    yield "zscale", {"t": "bt709", "m": "bt709", "r": "limited"}


def peak(video: VideoFacts) -> float:
    """The brightest light there is, as a multiple of paper white: the tone curve brings it to SDR's white."""
    nits = video.peak_nits if video.color_transfer == "smpte2084" else 0.0
    return min(max(nits or USUAL_PEAK_NITS, 2 * PAPER_NITS), _BRIGHTEST_NITS) / PAPER_NITS


def is_rgb(video: VideoFacts) -> bool:
    return not video.pixel_format.startswith(("yuv", "nv", "p0", "p2", "y2", "uyvy", "xv", "gray", "ya"))


def untagged_matrix(video: VideoFacts) -> str:
    """Guess the matrix that colours were made with from the size, as players do."""
    return "bt709" if min(video.width, video.height) >= _HIGH_DEFINITION else "smpte170m"


def _or(tag: str, usual: str) -> str:
    return usual if tag in ("", "unknown", "unspecified", "reserved") else tag
