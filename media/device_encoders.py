"""How each device's encoder is told what `media/encoders.py` tells the software ones: our keyframes and no others, a
quality under a cap, a header that never varies.

No two generations of a device take the same options: old ones have no B-frames, some drivers know no quality under a
cap. So each family has ways, the best first; detection finds the first that this device takes, and keeps to it.
Quality scales differ by device and are not measured here: they are x264's, shifted as for the software encoders.
"""

from collections.abc import Sequence
from typing import Any

from contracts.plan import Encoding, Grid, PlannedRendition
from contracts.states import Codec
from media import encoders
from media.devices import Family, GpuEncoder

Options = dict[str, Any]

_NVENC_PRESETS = {
    "ultrafast": "p1", "superfast": "p1", "veryfast": "p2", "faster": "p3", "fast": "p4",
    "medium": "p5", "slow": "p6", "slower": "p7", "veryslow": "p7", "placebo": "p7",
}  # fmt: skip
_QSV_PRESETS = {"ultrafast": "veryfast", "superfast": "veryfast", "placebo": "veryslow"}  # else they share x264's words
_PROFILES = {Codec.H264: "high", Codec.HEVC: "main", Codec.AV1: "main"}
# Two in a row, none of them referred to: as `b-pyramid=none` of x264, it keeps the reordering short.
_B_FRAMES: Options = {"bf": 2}
_NO_B_FRAMES: Options = {"bf": 0}


def options(device: GpuEncoder, rung: PlannedRendition, encoding: Encoding, grid: Grid, frames: int) -> Options:
    """Give ffmpeg's options for one rendition on this device."""
    if device.family is Family.STAND_IN:
        told = encoders.options(rung, encoding, grid, frames, alone=True)
        return told | {"c:v": device.name} | _marked(rung.codec, grid)
    told = encoders.on_grid(grid, frames) | {"c:v": device.name} | _profile(device)
    match device.family:
        case Family.NVENC:
            told |= _nvenc(device, rung, encoding)
        case Family.QSV:
            told |= _qsv(encoding)
        case Family.VAAPI:
            told |= _vaapi()
        case Family.VIDEOTOOLBOX:
            told |= _videotoolbox()
    return told | ways(device.family, rung, encoding)[device.way]


def ways(family: Family, rung: PlannedRendition, encoding: Encoding) -> Sequence[Options]:
    """Give the ways in which encoders of a family differ, the best first."""
    quality = round(encoders.quality(rung.codec, encoding))
    cap = encoders.capped(rung)
    # Where the device knows no quality under a cap: most of the cap on average.
    average = cap | {"b:v": f"{round(rung.video_kbps * 0.8)}k"}
    reordered = (_B_FRAMES, _NO_B_FRAMES) if rung.codec is not Codec.AV1 else (_NO_B_FRAMES,)
    match family:
        case Family.NVENC:
            # b:v 0: the default of 2 Mbit/s would be aimed at instead of the quality. 51 is where the scale ends in
            # every build, AV1's too before ffmpeg 7.
            rates: list[Options] = [cap | {"rc": "vbr", "cq": min(51, quality), "b:v": 0}]
        case Family.QSV:
            # A quality and a cap together choose QVBR. Look-ahead would choose LA_ICQ, which heeds no cap.
            rates = [cap | {"global_quality": min(51, quality)}, average]
        case Family.VAAPI:
            # AV1's scale is the quantizer's own, 0 to 255.
            scaled = min(255, 4 * quality) if rung.codec is Codec.AV1 else min(51, quality)
            best = cap | {"rc_mode": "QVBR", "global_quality": scaled, "b:v": average["b:v"]}
            rates = [best, average | {"rc_mode": "VBR"}]
        case Family.VIDEOTOOLBOX:
            # A quality from 1 to 100, more is better; only Apple's own chips know one.
            rates = [cap | {"q:v": max(1, round(100 - 1.6 * min(51, quality)))}, average]
        case Family.STAND_IN:
            return [{}]
    found = [rate | b_frames for rate in rates for b_frames in reordered]
    if family is Family.VAAPI:
        # Newer Intel devices encode only by what is called low power there; AMD's know no such thing.
        found += [one | {"low_power": 1} for one in found]
    return found


def _profile(device: GpuEncoder) -> Options:
    named: Options = {"profile:v": _PROFILES[device.codec]}
    if device.codec is Codec.HEVC:
        named["tag:v"] = "hvc1"  # Apple's players take no other HEVC
    if device.codec is Codec.AV1 and device.family is Family.NVENC:
        del named["profile:v"]  # it has but one and no option for it
    return named


def _nvenc(device: GpuEncoder, rung: PlannedRendition, encoding: Encoding) -> Options:
    told: Options = {
        "preset": _NVENC_PRESETS[encoding.preset],
        "tune": "hq",
        # A keyframe that is asked for is else a plain intra picture: later ones may refer to what is before it.
        "forced-idr": 1,
        "no-scenecut": 1,
    }
    if rung.codec is not Codec.AV1:
        told["b_ref_mode"] = "disabled"
    if device.device:
        told["gpu"] = device.device
    return told


def _qsv(encoding: Encoding) -> Options:
    return {
        "preset": _QSV_PRESETS.get(encoding.preset, encoding.preset),
        "forced_idr": 1,  # as for NVENC
        "flags": "+cgop",
        # No pictures of its own choice: neither intra ones at scene cuts nor another pattern of B-frames.
        "adaptive_i": 0,
        "adaptive_b": 0,
    }


def _vaapi() -> Options:
    # Every intra picture is a full refresh; B-frames refer to nothing but P and I.
    return {"idr_interval": 0, "b_depth": 1}


def _videotoolbox() -> Options:
    # Not by the CPU: without a device it is to say so.
    return {"allow_sw": 0}


def _marked(codec: Codec, grid: Grid) -> Options:
    """Make the stand-in's header another than the CPU's, so that segments of the two cannot be mixed unnoticed."""
    match codec:
        case Codec.H264:
            return {"profile:v": "main"}
        case Codec.HEVC:
            return {"x265-params": encoders.x265_params(grid) + ":ctu=16"}
        case Codec.AV1:
            return {"svtav1-params": "scd=0:film-grain=1"}
