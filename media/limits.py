"""What a source may cost before it is refused: pixels, rate, streams, length, memory and time. Pure.

Each limit is a setting and has a code of its own, so that whoever runs the service can tell which one to raise.
"""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass

from contracts.errors import SourceTooFast, SourceTooLarge, SourceTooLong, SourceTooManyStreams
from contracts.media import VideoFacts
from contracts.plan import PlannedRendition
from contracts.states import Codec

GIB = 1 << 30
LONGEST_SIDE = 16_384  # no encoder and no browser goes further
SLOWEST_BYTES_PER_S = 5_000_000  # a disk slower than this is broken, not slow

# Measured peaks, doubled or more: a limit is there for what runs away, not for what is merely large.
_BASE_BYTES = 2 * GIB
_BYTES_PER_CORE = 64 << 20  # stacks and queues of the threads that ffmpeg starts for each
_DECODED_BYTES_PER_PIXEL = 400  # reference pictures, one per thread, and the queues between the filters
_ENCODED_BYTES_PER_PIXEL = {Codec.H264: 700, Codec.HEVC: 1000, Codec.AV1: 2000}  # mostly what they look ahead

_DRIVER_BYTES = 8 * GIB  # a driver maps a card's memory into the process; not measured, for want of a card


@dataclass(frozen=True)
class Limits:
    """The settings of that name, as `docs/configuration.md` explains them."""

    pixels: int = 8192 * 4320
    frame_rate: float = 1000.0
    streams: int = 200
    duration_s: float = 90_000.0  # a day, and what a recorder that is told to stop after one adds to it
    least_share: float = 0.5
    probe_s: float = 60.0
    probe_memory_bytes: int = GIB
    encoder_memory_bytes: int | None = None

    def reading_s(self, size_bytes: int) -> float:
        """Say how long one look through a whole file may take."""
        return self.probe_s + size_bytes / SLOWEST_BYTES_PER_S

    @property
    def sound_memory_bytes(self) -> int:
        """Sound alone needs little; what it needs, long tables of contents take."""
        return self.encoder_memory_bytes or _BASE_BYTES

    def memory(self, video: VideoFacts, renditions: Sequence[PlannedRendition] = ()) -> int:
        """Say how much one encoder may take: what the setting says, else what such pictures need, generously."""
        if self.encoder_memory_bytes is not None:
            return self.encoder_memory_bytes
        decoding = video.width * video.height * _DECODED_BYTES_PER_PIXEL
        encoding = sum(_DRIVER_BYTES for one in renditions if one.gpu)
        encoding += sum(one.width * one.height * _ENCODED_BYTES_PER_PIXEL[one.codec] for one in renditions)
        return _BASE_BYTES + _BYTES_PER_CORE * (os.cpu_count() or 1) + decoding + encoding

    def check_streams(self, count: int) -> None:
        if count > self.streams:
            raise SourceTooManyStreams(f"The file has {count} streams; at most {self.streams} are taken.")

    def check_size(self, width: int, height: int) -> None:
        """Refuse pictures that no machine should have to decode; their size is only declared so far."""
        if width * height > self.pixels:
            raise SourceTooLarge(
                f"The pictures are {width}x{height}, {_millions(width * height)} pixels; "
                f"at most {_millions(self.pixels)} are taken."
            )
        if max(width, height) > LONGEST_SIDE:
            raise SourceTooLarge(f"The pictures are {width}x{height}; no side may be longer than {LONGEST_SIDE}.")

    def check_length(self, seconds: float) -> None:
        if not math.isfinite(seconds) or seconds > self.duration_s:
            raise SourceTooLong(f"The video lasts {_long(seconds)}; at most {_long(self.duration_s)} are taken.")

    def check_rate(self, pictures: int, seconds: float) -> None:
        """Refuse more pictures a second than any camera takes, counted over a second at least."""
        rate = pictures / max(seconds, 1.0)
        if rate > self.frame_rate:
            raise SourceTooFast(f"The video shows {rate:.0f} pictures a second; at most {self.frame_rate:g} are taken.")


def _millions(pixels: int) -> str:
    return f"{pixels / 1e6:.1f} million"


def _long(seconds: float) -> str:
    if not math.isfinite(seconds):
        return "for ever"
    for unit, name in ((86_400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds:.3g} seconds"
