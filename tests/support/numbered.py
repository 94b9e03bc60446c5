"""Pictures that carry their own number as eight bars, black or white: what comes out can be asked which it is."""

import subprocess
from fractions import Fraction
from pathlib import Path

from media.tools import Toolbox

WIDTH, HEIGHT, BITS = 320, 180, 8


def draw(numbers: range) -> bytes:
    """Draw gray pictures, one per number."""
    bar = WIDTH // BITS
    rows = (b"".join((b"\xff" if number >> bit & 1 else b"\0") * bar for bit in range(BITS)) for number in numbers)
    return b"".join(row * HEIGHT for row in rows)


def make(tools: Toolbox, to: Path, *options: str, frames: int = 100, rate: str = "25") -> None:
    """Write numbered pictures and a tone of the same length; `options` choose codecs and container."""
    raw = ["-f", "rawvideo", "-pix_fmt", "gray", "-s", f"{WIDTH}x{HEIGHT}", "-r", rate, "-i", "pipe:0"]
    # Not a longer tone and `-shortest`: on a busy machine that lets some of the rest through.
    tone = ["-f", "lavfi", "-i", f"sine=f=440:r=48000:d={float(frames / Fraction(rate))}"]
    argv = [str(tools.pick().ffmpeg), "-y", "-v", "error", *raw, *tone, "-pix_fmt", "yuv420p", *options, str(to)]
    subprocess.run(argv, input=draw(range(frames)), check=True, timeout=60)


def read(tools: Toolbox, *parts: Path) -> list[int]:
    """Read the numbers of the pictures that come out of these bytes, joined."""
    joined = b"".join(part.read_bytes() for part in parts)
    argv = [str(tools.pick().ffmpeg), "-v", "error", "-i", "pipe:0", "-map", "0:v:0", "-fps_mode", "passthrough"]
    argv += ["-vf", f"scale={BITS}:1:flags=area,format=gray", "-f", "rawvideo", "-"]
    seen = subprocess.run(argv, input=joined, capture_output=True, check=True, timeout=60).stdout
    pictures = (seen[at : at + BITS] for at in range(0, len(seen), BITS))
    return [sum((level > 128) << bit for bit, level in enumerate(levels)) for levels in pictures]
