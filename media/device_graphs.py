"""How pictures come to a device's encoder: decoded and scaled there, or made ready by the CPU and sent up.

A device only scales. Whatever else a picture needs — fields put together, HDR mapped, turning, cropping, another matrix
or layout of its colours — the CPU does, as for its own encoders; the device then gets the finished picture.
"""

from collections.abc import Iterator
from typing import Any

from contracts.media import VideoFacts
from contracts.plan import Encoding, ToneMap
from media import colour
from media.devices import Family, GpuEncoder
from media.filters import Filter

_NAME = "gpu"  # of the device within one command line
# ffmpeg's names: of the way to decode, of pictures that stay on the device, and of the filter that scales them.
_ACCELERATION = {
    Family.NVENC: ("cuda", "cuda", "scale_cuda"),
    Family.QSV: ("qsv", "qsv", "scale_qsv"),
    Family.VAAPI: ("vaapi", "vaapi", "scale_vaapi"),
    Family.VIDEOTOOLBOX: ("videotoolbox", "videotoolbox_vld", "scale_vt"),
}
# Decoders of devices have a fixed number of surfaces. The filters between hold some of them, the encoder a few more;
# with too few the decoder waits for ever, or says that it has none left. NVIDIA's takes no more than 32 in all, and a
# stream may need 17 for itself.
_SURFACES = {"extra_hw_frames": 8}


def stays_there(device: GpuEncoder, video: VideoFacts, encoding: Encoding) -> bool:
    """Say whether a picture need not pass through the CPU: the device decodes it, and it needs nothing but scaling."""
    plain = video.pixel_format == "yuv420p" and video.color_range != "pc" and colour.is_bt709(video)
    upright = not video.rotation and not video.mirrored and not any(video.crop)
    mapped = encoding.deinterlace or encoding.narrow_gamut or encoding.tone_map is not ToneMap.NONE
    return video.codec in device.decodes and plain and upright and not mapped and not video.untimed


def filter_needed(device: GpuEncoder) -> str:
    """Name the filter that scales on the device; none, and there is no staying there."""
    return _ACCELERATION[device.family][2] if device.family in _ACCELERATION else ""


def opened(device: GpuEncoder, *, staying: bool) -> list[str]:
    """Open the device, before anything is read. NVENC and VideoToolbox open it themselves for pictures of the CPU."""
    match device.family:
        case Family.NVENC if staying:
            kind = [f"cuda={_NAME}:{device.device or 0}"]
        case Family.VIDEOTOOLBOX if staying:
            kind = [f"videotoolbox={_NAME}"]
        case Family.VAAPI:
            kind = [f"vaapi={_NAME}:{device.device}"]
        case Family.QSV if device.device:
            # Of several devices QSV takes the first; by way of VAAPI it takes the one that is named.
            kind = [f"vaapi=node:{device.device}", f"qsv={_NAME}@node"]
        case Family.QSV:
            kind = [f"qsv={_NAME}"]
        case _:
            return []
    return [*(word for one in kind for word in ("-init_hw_device", one)), "-filter_hw_device", _NAME]


def reading(device: GpuEncoder) -> dict[str, Any]:
    """Decode on the device and leave the pictures there."""
    way, pictures, _ = _ACCELERATION[device.family]
    return {"hwaccel": way, "hwaccel_device": _NAME, "hwaccel_output_format": pictures, **_SURFACES}


def scaled(device: GpuEncoder, width: int, height: int) -> Iterator[Filter]:
    """Scale pictures that stay on the device. The grid's filters come before: they look at times only."""
    size: dict[str, str | int] = {"w": width, "h": height}
    if device.family is not Family.VIDEOTOOLBOX:
        size["format"] = "nv12"
    yield filter_needed(device), size
    yield "setsar", {"sar": "1"}
    yield "setparams", dict(colour.BT709)


def uploaded(device: GpuEncoder) -> Iterator[Filter]:
    """Send finished pictures up, where the encoder takes no others."""
    if device.family in (Family.QSV, Family.VAAPI):
        yield "format", {"pix_fmts": "nv12"}
        yield "hwupload", {"extra_hw_frames": 16}  # what the encoder holds while it reorders
