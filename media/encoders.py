"""How each encoder is told the same: our keyframes and no others, a quality under a cap, a header that never varies.

Checked with x264, x265 and SVT-AV1: every span of a rendition, whatever its length, begins with the same init segment.
"""

from typing import Any

from contracts.plan import Encoding, Grid, PlannedRendition
from contracts.states import Codec

# SVT-AV1 counts its presets. From 10 on it shows wrong pictures: of 75 numbered ones six looked like their neighbours.
_SVT_PRESETS = {
    "ultrafast": 9, "superfast": 9, "veryfast": 9, "faster": 9, "fast": 8,
    "medium": 7, "slow": 6, "slower": 5, "veryslow": 4, "placebo": 3,
}  # fmt: skip
# The setting is x264's. The others' scales are shifted: their makers call x265's 28 and SVT-AV1's 35 what x264's 23 is.
# One step less of a shift, as what is asked for is a quality, not a size.
_CRF_SHIFT = {Codec.H264: 0, Codec.HEVC: 4, Codec.AV1: 11}
_HIGHEST_CRF = {Codec.H264: 51.0, Codec.HEVC: 51.0, Codec.AV1: 63.0}


def options(
    rung: PlannedRendition, encoding: Encoding, grid: Grid, frames: int, *, alone: bool, threads: int = 1
) -> dict[str, Any]:
    """Give ffmpeg's options for one rendition; so many threads, unless the machine is the step's own."""
    common = {
        "c:v": rung.encoder,
        "preset": encoding.preset,
        # Constant quality under a cap: spans restart a bit rate's control and pay for it, a quality's they do not.
        "crf": f"{quality(rung.codec, encoding):g}",
        **capped(rung),
        **on_grid(grid, frames),
        **({} if alone else {"threads": threads}),
    }
    match rung.codec:
        case Codec.H264:
            return common | _x264()
        case Codec.HEVC:
            return common | _x265(grid, None if alone else threads)
        case Codec.AV1:
            return common | _svt_av1(encoding, None if alone else threads)


def quality(codec: Codec, encoding: Encoding) -> float:
    """Give the quality that is asked for on a codec's own scale."""
    return min(encoding.crf + _CRF_SHIFT[codec], _HIGHEST_CRF[codec])


def capped(rung: PlannedRendition) -> dict[str, Any]:
    return {"maxrate": f"{rung.video_kbps}k", "bufsize": f"{2 * rung.video_kbps}k"}


def on_grid(grid: Grid, frames: int) -> dict[str, Any]:
    """Give what every encoder is told, whoever made it."""
    return {
        # A closed group of pictures per segment, so that segments stand alone …
        "g": grid.segment_frames,
        # … cut at our boundaries in every rung.
        "force_key_frames": f"expr:not(mod(n,{grid.segment_frames}))",
        # The count is decided by the plan; one picture more would start a segment of its own.
        "frames:v": frames,
        "color_primaries": "bt709",
        "color_trc": "bt709",
        "colorspace": "bt709",
        "color_range": "tv",
    }


def _x264() -> dict[str, Any]:
    return {
        # High is decoded by everything made since 2010.
        "profile:v": "high",
        # No keyframes of its own: x264 adds them at scene cuts, and the rungs would stop matching.
        "sc_threshold": 0,
        # Halves the reordering, and with it the lateness that players built on ffmpeg see in negative offsets.
        "x264-params": "b-pyramid=none",
    }


def _x265(grid: Grid, threads: int | None) -> dict[str, Any]:
    return {
        "profile:v": "main",
        # Parameter sets in the init segment only; Apple's players take no other HEVC.
        "tag:v": "hvc1",
        "forced-idr": 1,
        "x265-params": x265_params(grid, threads),
    }


def x265_params(grid: Grid, threads: int | None = None) -> str:
    params = {
        "keyint": grid.segment_frames,
        "min-keyint": grid.segment_frames,
        "scenecut": 0,
        # x265 opens its groups unless told not to: pictures would refer to the segment before.
        "open-gop": 0,
        "b-pyramid": 0,  # as for x264
        # Goes into the header with the number of threads in it: no two machines would agree.
        "info": 0,
        # On a machine of one core x265 goes without by itself, and the header says so.
        "wpp": 0,
        "log-level": "error",
    }
    if threads is not None:
        params["pools"] = threads  # -threads is not about these
    return ":".join(f"{name}={value}" for name, value in params.items())


def _svt_av1(encoding: Encoding, threads: int | None) -> dict[str, Any]:
    # scd: no keyframes of its own. lp: its threads; -threads is not about them.
    params = "scd=0" if threads is None else f"scd=0:lp={threads}"
    return {"preset": _SVT_PRESETS[encoding.preset], "svtav1-params": params}
