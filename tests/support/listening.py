"""Hear and see what comes out: tones and levels of a rendition's sound, beeps and flashes with their times."""

import math
import subprocess
from array import array
from dataclasses import dataclass
from pathlib import Path

from contracts.layout import INIT
from media.tools import Toolbox

RATE = 48_000
FLASH_FPS = 30
# A white picture and a 1 kHz beep at 0.5, 1.5, 2.5 … seconds.
FLASHES = f"color=black:s=320x180:r={FLASH_FPS},drawbox=t=fill:c=white:enable='eq(mod(n,30),15)'"
BEEPS = "aevalsrc='if(gte(t,0.5)*lt(mod(t+0.5,1),0.04),0.5*sin(2*PI*1000*t),0)|0':s={rate}:c=stereo"


@dataclass(frozen=True)
class Sound:
    """Samples per channel; the first is heard at time 0 of the stream."""

    channels: tuple["array[float]", ...]

    @property
    def seconds(self) -> float:
        return len(self.channels[0]) / RATE

    def level(self, frequency: float, start_s: float, end_s: float, channel: int = 0) -> float:
        """Measure one tone by itself, as the amplitude it has (Goertzel)."""
        part = self.channels[channel][int(start_s * RATE) : int(end_s * RATE)]
        turn = 2 * math.cos(2 * math.pi * frequency / RATE)
        before = last = 0.0
        for sample in part:
            before, last = last, sample + turn * last - before
        power = last * last + before * before - turn * last * before
        return 2 * math.sqrt(max(0.0, power)) / max(1, len(part))

    def loudness(self, start_s: float, end_s: float) -> float:
        """Add up the channels' power (RMS): what the ear gets from both speakers."""
        parts = [channel[int(start_s * RATE) : int(end_s * RATE)] for channel in self.channels]
        return math.sqrt(sum(sum(sample * sample for sample in part) / max(1, len(part)) for part in parts))

    def peak(self, start_s: float = 0.0, end_s: float = 1e9) -> float:
        cut = slice(int(start_s * RATE), int(min(end_s, self.seconds) * RATE))
        return max(max(max(channel[cut]), -min(channel[cut])) for channel in self.channels)

    def beeps(self, threshold: float = 0.15, quiet_s: float = 0.2) -> list[float]:
        """Name the times at which a sound begins after a silence."""
        found: list[float] = []
        heard = -1e9
        for place, sample in enumerate(self.channels[0]):
            if abs(sample) >= threshold:
                now = place / RATE
                if now - heard > quiet_s:
                    found.append(now)
                heard = now
        return found


def _joined(folder: Path) -> bytes:
    parts = [folder / INIT, *sorted(folder.glob("seg_*.m4s"))]
    return b"".join(part.read_bytes() for part in parts)


def _decoded(tools: Toolbox, data: bytes, *words: str) -> bytes:
    argv = [str(tools.pick().ffmpeg), "-v", "error", "-i", "pipe:0", *words, "-"]
    return subprocess.run(argv, input=data, capture_output=True, check=True, timeout=60).stdout


def listen(tools: Toolbox, folder: Path, channels: int = 2) -> Sound:
    """Decode a sound rendition: init and segments joined, as a player appends them."""
    raw = array("f", _decoded(tools, _joined(folder), "-f", "f32le", "-c:a", "pcm_f32le"))
    return Sound(tuple(raw[channel::channels] for channel in range(channels)))


def flashes(tools: Toolbox, folder: Path, fps: float = FLASH_FPS) -> list[float]:
    """Name the times of the white pictures; picture n is shown at n/fps, which the segments' boxes were checked for."""
    words = ["-fps_mode", "passthrough", "-vf", "scale=8:8", "-pix_fmt", "gray", "-f", "rawvideo"]
    raw = _decoded(tools, _joined(folder), *words)
    pictures = [raw[at : at + 64] for at in range(0, len(raw), 64)]
    return [number / fps for number, picture in enumerate(pictures) if sum(picture) / 64 > 150]
