"""Files that no honest program writes: built box by box, or broken on purpose."""

import random
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

from media.tools import Toolbox


def atom(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I4s", len(content) + 8, kind) + content


def _words(*values: int) -> bytes:
    return struct.pack(f">{len(values)}I", *values)


def movie(*, samples: int = 1, width: int = 320, height: int = 180, tracks: int = 1) -> bytes:
    """Write an MP4 whose tables declare what its bytes do not hold."""
    table = atom(b"stsd", _words(0, 1) + atom(b"jpeg", _entry(width, height)))
    table += atom(b"stts", _words(0, 1, samples, 1)) + atom(b"stsz", _words(0, 1, samples))
    table += atom(b"stsc", _words(0, 1, 1, samples, 1)) + atom(b"stco", _words(0, 1, 48))
    data = atom(b"dinf", atom(b"dref", _words(0, 1) + atom(b"url ", _words(1))))
    media = atom(b"mdhd", bytes(12) + _words(1000, 1000) + bytes(4))
    media += atom(b"hdlr", bytes(8) + b"vide" + bytes(13))
    media += atom(b"minf", atom(b"vmhd", bytes(12)) + data + atom(b"stbl", table))
    moov = atom(b"mvhd", bytes(12) + _words(1000, 1000) + bytes(80))
    for number in range(1, tracks + 1):
        size = struct.pack(">II", width << 16, height << 16)
        head = atom(b"tkhd", _words(3) + bytes(8) + _words(number, 0, 1000) + bytes(52) + size)
        moov += atom(b"trak", head + atom(b"mdia", media))
    return atom(b"ftyp", b"isom\0\0\0\0isom") + atom(b"mdat", bytes(1000)) + atom(b"moov", moov)


def _entry(width: int, height: int) -> bytes:
    return bytes(6) + struct.pack(">H", 1) + bytes(16) + struct.pack(">HH", width, height) + bytes(50)


def nested(depth: int) -> bytes:
    """Write boxes within boxes within boxes."""
    inner = b""
    for _ in range(depth):
        inner = atom(b"trak", inner)
    return atom(b"ftyp", b"isom\0\0\0\0isom") + atom(b"moov", inner)


def crowded(boxes: int) -> bytes:
    """Write a movie of nothing but empty boxes."""
    return atom(b"ftyp", b"isom\0\0\0\0isom") + atom(b"moov", atom(b"trak", b"") * boxes)


def patched(source: Path, change: Callable[[bytearray], None]) -> bytes:
    data = bytearray(source.read_bytes())
    change(data)
    return bytes(data)


def middle(filling: str) -> Callable[[bytearray], None]:
    """Overwrite the fifth of a file after its middle with zeros or noise."""

    def change(data: bytearray) -> None:
        start, end = len(data) // 2, len(data) * 7 // 10
        noise = random.Random(7).randbytes(end - start)
        data[start:end] = noise if filling == "noise" else bytes(end - start)

    return change


def without_packets(tools: Toolbox, source: Path, to: Path, from_s: float, to_s: float) -> Path:
    """Write noise over the pictures of a time; the tables name them still."""
    argv = [str(tools.ffprobe), "-v", "error", "-select_streams", "v:0", "-show_entries", "packet=pts_time,size,pos"]
    told = subprocess.run([*argv, "-of", "csv=p=0", str(source)], check=True, capture_output=True, text=True).stdout
    data, chance = bytearray(source.read_bytes()), random.Random(7)
    for line in told.splitlines():
        pts, size, at = line.split(",")[:3]
        if from_s <= float(pts) < to_s:
            data[int(at) : int(at) + int(size)] = chance.randbytes(int(size))
    to.write_bytes(data)
    return to


def media_of_noise(data: bytearray) -> None:
    """Leave the tables as they are, and of the media nothing."""
    start = data.index(b"mdat") + 4
    data[start:] = random.Random(7).randbytes(len(data) - start)


def with_dolby_vision(source: Path, profile: int, base: int) -> bytes:
    """Say in an HEVC track's description that it is Dolby Vision; the moov must come last, so that no offset moves."""
    data = source.read_bytes()
    at = data.index(b"hvcC") - 4
    # Version 1.0, profile, level 6 with the flags for a base layer and its metadata, what the base layer is.
    record = bytes([1, 0]) + struct.pack(">H", profile << 9 | 6 << 3 | 0b101) + bytes([base << 4]) + bytes(19)
    box = atom(b"dvcC" if profile <= 7 else b"dvvC", record)
    data = data[:at] + box + data[at:]
    for kind in (b"moov", b"trak", b"mdia", b"minf", b"stbl", b"stsd", b"hvc1"):
        place = data.index(kind) - 4
        (size,) = struct.unpack_from(">I", data, place)
        data = data[:place] + struct.pack(">I", size + len(box)) + data[place + 4 :]
    return data
