"""Encoders of devices: their families, their names, and one that was found to work on this machine. Pure."""

from dataclasses import dataclass
from enum import StrEnum

from contracts.states import Codec
from media.choosing import ENCODERS
from media.tools import Ffmpeg


class Family(StrEnum):
    """Who makes the device speak; its encoders are called `h264_nvenc` and so on."""

    NVENC = "nvenc"  # NVIDIA
    QSV = "qsv"  # Intel, by oneVPL or the Media SDK
    VAAPI = "vaapi"  # Intel and AMD on Linux
    VIDEOTOOLBOX = "videotoolbox"  # Apple
    STAND_IN = "software"  # none: a software encoder in a device's place, for tests and for trying the gpu pool out


# In this order they are tried: an Intel device answers to QSV and to VAAPI, and QSV makes the better picture.
DEVICES = (Family.NVENC, Family.QSV, Family.VAAPI, Family.VIDEOTOOLBOX)

# How many encodes a device does at once before it only makes each of them slower. NVIDIA's consumer cards refuse more
# sessions than their driver allows, all programs of the machine together: 3 of old, 5 since 530, 8 since 550.
SESSIONS = {Family.NVENC: 3, Family.QSV: 2, Family.VAAPI: 2, Family.VIDEOTOOLBOX: 2, Family.STAND_IN: 1}

VENDORS = {
    Family.NVENC: "NVIDIA",
    Family.QSV: "Intel",
    Family.VAAPI: "VA-API",
    Family.VIDEOTOOLBOX: "Apple",
    Family.STAND_IN: "none: software stands in",
}


def device_encoder(family: Family, codec: Codec) -> str:
    return ENCODERS[codec] if family is Family.STAND_IN else f"{codec}_{family}"


KNOWN: dict[str, tuple[Family, Codec]] = {
    device_encoder(family, codec): (family, codec) for family in Family for codec in Codec
}


@dataclass(frozen=True)
class GpuEncoder:
    """An encoder that has encoded here, how it wants to be told, and what else the device did when it was asked."""

    family: Family
    codec: Codec
    tool: Ffmpeg
    device: str = ""  # a render node, or the number of a CUDA device; empty: the driver's first
    way: int = 0  # which of the family's ways to be told it took, see `media/device_encoders.py`
    decodes: frozenset[str] = frozenset()  # codecs that the device also decodes, and scales, without the CPU

    @property
    def name(self) -> str:
        return device_encoder(self.family, self.codec)
