"""From HDR to SDR: what BT.2100 says the light is, paper white to nearly SDR's white, highlights bent to fit.

Two ways to the same curve: zscale and tonemap in floating point, or tables of 16 bits for builds without zscale.
"""

from collections.abc import Iterator

from contracts.media import VideoFacts
from contracts.plan import ToneMap

Filter = tuple[str, dict[str, str | int]]

TRANSFERS = frozenset({"smpte2084", "arib-std-b67"})
# What scale reads from each picture itself; `gbr` is none.
MATRICES = frozenset({"bt709", "gbr", "smpte170m", "bt470bg", "fcc", "smpte240m", "bt2020nc"})
# Where PQ and HLG put the white of a sheet of paper, in cd/m² (BT.2408).
PAPER_NITS = 203
# Up to this share of paper white the tone curve changes nothing; above it makes room for what is brighter.
KNEE = 0.7
# What grading monitors reach and HLG is meant for: the brightest light of a video that does not say.
_USUAL_PEAK_NITS = 1000
_BRIGHTEST_NITS = 4000  # beyond it masters say what the format could hold, not what is there
_SIDE_DATA = ("MASTERING_DISPLAY_METADATA", "CONTENT_LIGHT_LEVEL", "DYNAMIC_HDR_PLUS")
# Linear light of BT.2020 in the primaries of BT.709 (BT.2087), as colorchannelmixer wants it.
_TO_709 = {
    "rr": "1.6605", "rg": "-0.5876", "rb": "-0.0728",
    "gr": "-0.1246", "gg": "1.1329", "gb": "-0.0083",
    "br": "-0.0182", "bg": "-0.1006", "bb": "1.1187",
}  # fmt: skip


def to_sdr(video: VideoFacts, way: ToneMap) -> Iterator[Filter]:
    """Map the tones and colours of a picture that is already scaled."""
    if video.color_transfer == "arib-std-b67":
        # BT.2100 raises HLG's light by its brightness to the power of 1.2, both ways below raise each colour by
        # itself, which makes all more colourful. Five sixths of the chroma before it undo that.
        middle = "(minval+maxval)/2"
        paler = f"(val-{middle})*5/6+{middle}"
        yield "lutyuv", {"u": paler, "v": paler}
    if way is ToneMap.ZSCALE:
        yield from _by_zscale(video)
    else:
        yield from _by_tables(video)
    # What a master says of its light is no longer true of these pictures.
    for kind in _SIDE_DATA:
        yield "sidedata", {"mode": "delete", "type": kind}


def _by_zscale(video: VideoFacts) -> Iterator[Filter]:
    meant = {
        "tin": video.color_transfer,
        "pin": _or(video.color_primaries, "bt2020"),
        "min": video.color_space if video.color_space in MATRICES else "bt2020nc",
        "rin": "full" if video.color_range == "pc" else "limited",
    }
    yield "zscale", {**meant, "t": "linear", "npl": PAPER_NITS}
    yield "format", {"pix_fmts": "gbrpf32le"}
    yield "zscale", {"p": "bt709"}
    # Mobius leaves what SDR can show untouched and bends only the highlights; hable darkens everything. The filter
    # would take the peak from the file too, but in units of 100 cd/m², which is not our white.
    yield "tonemap", {"tonemap": "mobius", "param": str(KNEE), "desat": 0, "peak": f"{_peak(video):.3f}"}
    yield "zscale", {"t": "bt709", "m": "bt709", "r": "limited"}


def _by_tables(video: VideoFacts) -> Iterator[Filter]:
    """The same in 16 bits: each colour through a table, the primaries by a matrix, each through a table again."""
    top = _peak(video)
    yield "scale", {"in_color_matrix": "bt2020", "in_range": "full" if video.color_range == "pc" else "limited"}
    yield "format", {"pix_fmts": "gbrp16le"}
    # Into light: 65535 is the peak.
    light = _pq_light() if video.color_transfer == "smpte2084" else _hlg_light()
    yield "lutrgb", _each(f"65535*min(1,{light}/{PAPER_NITS * top:.3f})")
    yield "colorchannelmixer", dict(_TO_709)
    # The tone curve, and BT.1886: what a screen of SDR undoes again.
    share = f"(val/65535*{top:.6f})"
    a = -KNEE * KNEE * (top - 1) / (KNEE * KNEE - 2 * KNEE + top)
    b = (KNEE * KNEE - 2 * KNEE * top + top) / (top - 1)
    gain = (b + KNEE) ** 2 / (b - a)
    bent = f"if(lt({share},{KNEE}),{share},{gain:.6f}*({share}+{a:.6f})/({share}+{b:.6f}))"
    yield "lutrgb", _each(f"65535*pow(min(1,{bent}),1/2.4)")
    yield "scale", {"out_color_matrix": "bt709", "out_range": "limited"}


def _pq_light() -> str:
    power = "pow(val/65535,32/2523)"
    return f"(10000*pow(max({power}-3424/4096,0)/(2413/128-2392/128*{power}),16384/2610))"


def _hlg_light() -> str:
    signal = "(val/65535)"
    scene = f"if(lte({signal},0.5),{signal}*{signal}/3,(exp(({signal}-0.55991073)/0.17883277)+0.28466892)/12)"
    return f"(1000*pow({scene},1.2))"


def _each(expression: str) -> dict[str, str | int]:
    return {"r": expression, "g": expression, "b": expression}


def _peak(video: VideoFacts) -> float:
    """The brightest light there is, as a multiple of paper white: the tone curve brings it to SDR's white."""
    nits = video.peak_nits if video.color_transfer == "smpte2084" else 0.0
    return min(max(nits or _USUAL_PEAK_NITS, 2 * PAPER_NITS), _BRIGHTEST_NITS) / PAPER_NITS


def _or(tag: str, usual: str) -> str:
    return usual if tag in ("", "unknown", "unspecified", "reserved") else tag
