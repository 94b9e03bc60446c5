"""Read MP4 boxes: what an init segment promises and what a media segment holds. Media bytes are never looked at."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from contracts.errors import OutputIncomplete
from media import codecs

_MOST_SAMPLES = 100_000
_NOT_SYNC = 0x10000  # sample_is_non_sync_sample


class BadBoxes(OutputIncomplete):
    """These bytes are not the segment they should be."""

    def __init__(self, what: str) -> None:
        super().__init__(f"A segment is broken: {what}.")


class NoSamples(BadBoxes):
    """A whole segment with nothing in it."""

    def __init__(self) -> None:
        super().__init__("no samples")


@dataclass(frozen=True)
class InitFacts:
    timescale: int
    codecs: str  # RFC 6381
    handler: str  # vide or soun
    width: int = 0
    height: int = 0
    channels: int = 0
    sample_rate: int = 0
    edit_start: int = 0  # media_time of the edit list; 0 when there is none
    default_duration: int = 0  # what a sample has when its fragment does not say
    default_size: int = 0
    default_flags: int = 0


@dataclass(frozen=True)
class SegmentFacts:
    tfdt: int
    samples: int
    duration: int  # in the track's timescale
    first_cts: int
    moofs: int
    size_bytes: int
    media_bytes: int  # what the samples add up to
    sync_samples: tuple[int, ...] = ()  # positions, in decoding order, where a player can start
    times: tuple[int, ...] = field(default=(), repr=False)  # when each sample is shown, in decoding order


def read_init(data: bytes) -> InitFacts:
    """Read the one track of an init segment."""
    try:
        return _Init(data).facts()
    except (struct.error, IndexError, KeyError) as error:
        raise BadBoxes(f"not an init segment: {error}") from error


def read_segment(data: bytes | Path, init: InitFacts | None = None) -> SegmentFacts:
    """Read a media segment; `init` gives the values that a fragment leaves out."""
    try:
        if isinstance(data, bytes):
            return _segment(BytesIO(data), init)
        with data.open("rb") as file:
            return _segment(file, init)
    except (struct.error, IndexError) as error:
        raise BadBoxes(f"not a media segment: {error}") from error


def canonical_init(data: bytes) -> bytes:
    """Leave out the one box by which inits of a rendition may differ, though all else in them is equal.

    ffmpeg 7 writes an empty `sdtp` when it has seen a picture that no other needs, and none when it has not: in a
    first segment of one picture, or of a still.
    """
    try:
        return b"".join(_without_sdtp(kind, content) for kind, content in children(data))
    except struct.error as error:
        raise BadBoxes(f"not an init segment: {error}") from error


def _without_sdtp(kind: bytes, content: bytes) -> bytes:
    if kind == b"sdtp" and len(content) <= 4:  # version and flags only: it speaks of no sample
        return b""
    if kind in (b"moov", b"trak", b"mdia", b"minf", b"stbl"):
        content = b"".join(_without_sdtp(*child) for child in children(content))
    return struct.pack(">I4s", len(content) + 8, kind) + content


def top_level(file: BinaryIO) -> Iterator[tuple[bytes, int, int]]:
    """Walk a file's outermost boxes as (kind, start of content, end); one that is cut off is an error."""
    whole = file.seek(0, 2)
    at = 0
    while at < whole:
        file.seek(at)
        header = file.read(16)
        size, kind = struct.unpack_from(">I4s", header)
        start = at + 8
        if size == 1:
            size, start = struct.unpack_from(">Q", header, 8)[0], at + 16
        elif size == 0:
            size = whole - at
        if size < start - at or at + size > whole:
            raise BadBoxes(f"the box {kind.decode('latin-1')} is cut off")
        yield kind, start, at + size
        at += size


def children(data: bytes, start: int = 0) -> Iterator[tuple[bytes, bytes]]:
    """Walk the boxes inside a box as (kind, content)."""
    at = start
    while at + 8 <= len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        if size < 8 or at + size > len(data):
            raise BadBoxes(f"the box {kind.decode('latin-1')} is cut off")
        yield kind, data[at + 8 : at + size]
        at += size


class _Init:
    def __init__(self, data: bytes) -> None:
        top = dict(children(data))
        if b"moov" not in top:
            raise BadBoxes("no moov box")
        moov = list(children(top[b"moov"]))
        tracks = [content for kind, content in moov if kind == b"trak"]
        if len(tracks) != 1:
            raise BadBoxes(f"{len(tracks)} tracks instead of one")
        self._trak = dict(children(tracks[0]))
        self._mdia = dict(children(self._trak[b"mdia"]))
        self._mvex = dict(children(dict(moov).get(b"mvex", b"")))

    def facts(self) -> InitFacts:
        mdhd = self._mdia[b"mdhd"]
        (timescale,) = struct.unpack_from(">I", mdhd, 20 if mdhd[0] == 1 else 12)
        handler = self._mdia[b"hdlr"][8:12].decode("latin-1")
        stbl = dict(children(dict(children(self._mdia[b"minf"]))[b"stbl"]))
        entry, content = next(children(stbl[b"stsd"], 8))
        width = height = channels = rate = 0
        if handler == "vide":
            width, height = struct.unpack_from(">HH", content, 24)
        else:
            channels, rate = struct.unpack_from(">H", content, 16)[0], struct.unpack_from(">I", content, 24)[0] >> 16
        # The fixed fields of a sample entry: 78 bytes for pictures, 28 for sound; its own boxes follow.
        inner = dict(children(content, 78 if handler == "vide" else 28))
        duration = size = flags = 0
        if b"trex" in self._mvex:
            duration, size, flags = struct.unpack_from(">III", self._mvex[b"trex"], 12)
        return InitFacts(
            timescale=timescale,
            codecs=codecs.describe(entry.decode("latin-1"), inner),
            handler=handler,
            width=width,
            height=height,
            channels=channels,
            sample_rate=rate,
            edit_start=self._edit_start(),
            default_duration=duration,
            default_size=size,
            default_flags=flags,
        )

    def _edit_start(self) -> int:
        elst = dict(children(self._trak.get(b"edts", b""))).get(b"elst")
        if not elst or struct.unpack_from(">I", elst, 4)[0] == 0:
            return 0
        return int(struct.unpack_from(">q", elst, 16)[0] if elst[0] == 1 else struct.unpack_from(">i", elst, 12)[0])


def _segment(file: BinaryIO, init: InitFacts | None) -> SegmentFacts:
    moofs = media_bytes = 0
    samples: list[_Sample] = []
    tfdt = None
    for kind, start, end in top_level(file):
        if kind == b"mdat":
            media_bytes += end - start
        if kind != b"moof":
            continue
        moofs += 1
        file.seek(start)
        trafs = [content for inner, content in children(file.read(end - start)) if inner == b"traf"]
        if len(trafs) != 1:
            raise BadBoxes(f"{len(trafs)} tracks in a fragment instead of one")
        begins, found = _fragment(trafs[0], init)
        tfdt = begins if tfdt is None else tfdt
        if begins != tfdt + sum(sample.duration for sample in samples):
            raise BadBoxes("fragments of one segment do not follow each other")
        samples += found
    size_bytes = file.seek(0, 2)
    if not size_bytes:
        raise BadBoxes("it is empty")  # not even the shell that ffmpeg closes when it was given nothing
    if tfdt is None or not samples:
        raise NoSamples
    wanted = sum(sample.size for sample in samples)
    if wanted > media_bytes:
        raise BadBoxes(f"{media_bytes} bytes of media where {wanted} should be")
    times, at = [], tfdt
    for sample in samples:
        times.append(at + sample.cts)
        at += sample.duration
    return SegmentFacts(
        tfdt=tfdt,
        samples=len(samples),
        duration=at - tfdt,
        first_cts=samples[0].cts,
        moofs=moofs,
        size_bytes=size_bytes,
        media_bytes=wanted,
        sync_samples=tuple(index for index, sample in enumerate(samples) if not sample.flags & _NOT_SYNC),
        times=tuple(times),
    )


@dataclass(frozen=True, slots=True)
class _Sample:
    duration: int
    size: int
    flags: int
    cts: int


def _fragment(traf: bytes, init: InitFacts | None) -> tuple[int, list[_Sample]]:
    tfdt: int | None = None
    duration, size, flags = (init.default_duration, init.default_size, init.default_flags) if init else (0, 0, 0)
    samples: list[_Sample] = []
    for kind, box in children(traf):
        if kind == b"tfdt":
            tfdt = struct.unpack_from(">Q" if box[0] == 1 else ">I", box, 4)[0]
        elif kind == b"tfhd":
            (has,) = struct.unpack_from(">I", box)
            at = 8 + (8 if has & 0x1 else 0) + (4 if has & 0x2 else 0)
            values = [duration, size, flags]
            for place, bit in enumerate((0x8, 0x10, 0x20)):
                if has & bit:
                    (values[place],) = struct.unpack_from(">I", box, at)
                    at += 4
            duration, size, flags = values
        elif kind == b"trun":
            samples += _run(box, duration, size, flags)
    if tfdt is None:
        raise BadBoxes("a fragment without its time")
    return tfdt, samples


def _run(box: bytes, duration: int, size: int, flags: int) -> list[_Sample]:
    has, count = struct.unpack_from(">II", box)
    at = 8 + (4 if has & 0x1 else 0)
    first_flags = flags
    if has & 0x4:
        (first_flags,) = struct.unpack_from(">I", box, at)
        at += 4
    fields = [bit for bit in (0x100, 0x200, 0x400, 0x800) if has & bit]
    if at + count * 4 * len(fields) > len(box):
        raise BadBoxes("a table of samples is cut off")
    if count > _MOST_SAMPLES:  # a table without fields can claim four thousand million samples in 16 bytes
        raise BadBoxes("a table of samples is absurdly long")
    # Offsets are signed in version 1; in version 0 they are not, and ours never are so large.
    rows = struct.iter_unpack(">" + "".join("i" if bit == 0x800 else "I" for bit in fields), box[at:]) if fields else ()
    samples = []
    for index, row in zip(range(count), rows if fields else [()] * count, strict=False):
        own = dict(zip(fields, row, strict=True))
        samples.append(
            _Sample(
                duration=own.get(0x100, duration),
                size=own.get(0x200, size),
                flags=own.get(0x400, first_flags if index == 0 else flags),
                cts=own.get(0x800, 0),
            )
        )
    return samples
