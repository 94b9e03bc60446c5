"""Chart videos that more than one test is about: turned, cropped, resized, interlaced, of a variable rate."""

import struct
from collections.abc import Sequence
from pathlib import Path

from tests.support.charts import X264, Charts, yuv

MATRICES = {
    "90": ("-display_rotation", "90"),
    "180": ("-display_rotation", "180"),
    "270": ("-display_rotation", "270"),
    "mirrored": ("-display_hflip",),
    "upside_down": ("-display_vflip",),
    "90_mirrored": ("-display_rotation", "90", "-display_hflip"),
    "270_mirrored": ("-display_rotation", "270", "-display_hflip"),
}
_STORED = {
    # A matrix that turns by 90 degrees counter-clockwise undoes a clockwise turn of the chart, and so on.
    "90": ("transpose=clock", (180, 320)),
    "180": ("hflip,vflip", (320, 180)),
    "270": ("transpose=cclock", (180, 320)),
    "mirrored": ("hflip", (320, 180)),
    "upside_down": ("vflip", (320, 180)),
    "90_mirrored": ("transpose=clock_flip", (180, 320)),
    "270_mirrored": ("transpose=cclock_flip", (180, 320)),
}


def turned(charts: Charts, turn: str) -> tuple[Path, tuple[int, int]]:
    """Store the chart lying, with the display matrix that shows it upright; return the stored size too."""
    how, stored = _STORED[turn]
    lying = charts.make(f"lying_{turn}.mp4", pictures=f"{yuv()},{how}", numbers=range(24))
    return charts.again(f"turned_{turn}.mp4", lying, "-c", "copy", before=MATRICES[turn]), stored


def apertured(charts: Charts) -> Path:
    """A band of white all round; only the chart in the middle is meant to be seen."""
    banded = charts.make("banded.mp4", pictures=f"{yuv()},pad=360:210:24:18:white", numbers=range(24))
    source = charts.folder / "aperture.mp4"
    # Width, height and centre as fractions; the centre is told from the middle of the stored picture.
    source.write_bytes(_with_clap(banded.read_bytes(), 320, 180, 24 + 160 - 180, 18 + 90 - 105))
    return source


def resized(
    charts: Charts, name: str, *, size_then: tuple[int, int], size: tuple[int, int] = (320, 180), how: str = "null"
) -> Path:
    """Two raw H.264 streams end to end: the second brings its own size, as a stream of a call does."""
    whole = charts.folder / f"{name}.h264"
    if not whole.exists():
        parts = []
        for index, (wide, high) in enumerate((size, size_then)):
            numbers = range(24 * index, 24 * index + 24)
            pictures = f"{yuv()},{how},scale={wide}:{high}"
            parts.append(charts.make(f"{name}{index}.h264", *X264, "-bf", "0", pictures=pictures, numbers=numbers))
        whole.write_bytes(b"".join(part.read_bytes() for part in parts))
    return charts.again(f"{name}.mp4", whole, "-c", "copy", before=("-framerate", "24"))


def resized_fields(charts: Charts) -> Path:
    """The same of interlaced pictures, which become narrower: a broadcast goes from one programme to the next."""
    whole = charts.folder / "resized_fields.h264"
    if not whole.exists():
        parts = []
        for index, wide in enumerate((320, 240)):
            numbers = range(50 * index, 50 * index + 50)
            weave = f"{yuv()},scale={wide}:180,interlace=scan=tff:lowpass=off"
            coded = [*X264, "-bf", "0", "-flags", "+ildct+ilme", "-x264-params", "tff=1"]
            parts.append(charts.make(f"fields{index}.h264", *coded, rate="50", pictures=weave, numbers=numbers))
        whole.write_bytes(b"".join(part.read_bytes() for part in parts))
    return charts.again("resized_fields.mp4", whole, "-c", "copy", before=("-framerate", "25"))


def interlaced(charts: Charts, first: str) -> Path:
    scan = {"top": "tff", "bottom": "bff"}[first]
    coded = [*X264, "-flags", "+ildct+ilme", "-x264-params", f"{scan}=1"]
    weave = f"{yuv()},interlace=scan={scan}:lowpass=off"
    return charts.make(f"interlaced_{scan}.mp4", *coded, rate="50", numbers=range(100), pictures=weave)


def variable(
    charts: Charts,
    name: str,
    seconds: list[float],
    last_ms: int = 1,
    *,
    group: int = 250,
    coded: Sequence[str] = X264,
) -> Path:
    """Give picture n of the chart the n-th time, in milliseconds; every `group` of them begins with a keyframe."""
    times = "+".join(f"eq(N,{n})*{round(second * 1000)}" for n, second in enumerate(seconds))
    timing = f"settb=1/1000,setpts='{times}'"
    codec = [
        *coded,
        "-g",
        str(group),
        "-fps_mode",
        "passthrough",
        "-enc_time_base",
        "1:1000",
        "-video_track_timescale",
        "1000",
    ]
    codec += ["-bsf:v", f"setts=pts=PTS:dts=DTS:duration={last_ms}"]
    return charts.make(name, *codec, rate="1000", numbers=range(len(seconds)), pictures=f"{yuv()},{timing}")


def _with_clap(movie: bytes, width: int, height: int, right: int, down: int) -> bytes:
    """Put a clean aperture into an MP4 whose index stands at its end: no offset changes, only sizes."""
    numbers = (width, 1, height, 1, right, 1, down, 1)
    clap = struct.pack(">I4s8i", 40, b"clap", *numbers)
    entry = movie.index(b"avc1", movie.rindex(b"moov")) - 4
    at = entry + int.from_bytes(movie[entry : entry + 4], "big")
    changed = bytearray(movie[:at] + clap + movie[at:])
    for kind in (b"moov", b"trak", b"mdia", b"minf", b"stbl", b"stsd", b"avc1"):
        box = movie.index(kind, movie.rindex(b"moov")) - 4
        size = int.from_bytes(movie[box : box + 4], "big")
        changed[box : box + 4] = (size + len(clap)).to_bytes(4, "big")
    return bytes(changed)
