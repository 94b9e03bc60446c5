"""Look at a file's own bytes before ffmpeg does: what is refused here was never opened by it.

A playlist or a script makes ffmpeg open what it names. `-format_whitelist` stops that too; this says it in words.
"""

import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from contracts.errors import (
    SourceEmpty,
    SourceEncrypted,
    SourceForbidden,
    SourceTooComplex,
    SourceUnreadable,
    SourceUnsupported,
)

# Containers that hold their own media. Nothing that names other files (hls, dash, concat, sdp, image2 with its
# patterns, rtsp, webm_dash_manifest, imf), and no device. Audio ones are here to be refused in words.
FORMATS = (
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg,mpegvideo,flv,live_flv,asf,asf_o,ogg,gif,apng,mxf,mxf_opatom,"
    "yuv4mpegpipe,nut,dv,rm,wtv,ivf,obu,h264,hevc,m4v,av1,mjpeg,mp3,aac,ac3,eac3,flac,wav,w64,aiff,caf,amr,dts,ape,wv,tta"
)

# Put before `-i` in every call of ffmpeg and ffprobe that reads what a stranger sent.
SAFE_INPUT = {"protocol_whitelist": "file", "format_whitelist": FORMATS}
# Broadcasts and discs say what their sound is only where it begins: after 7 seconds ffmpeg would look no further.
FAR_LOOK = {"analyzeduration": "60000000", "probesize": "64000000"}

_HEAD = 1 << 14
_STRETCH = 1 << 20
_FEW_ZEROS = 1 << 12  # as many may be padding, or silence
_PLAYLISTS = re.compile(
    rb"\A(#EXTM3U|#EXT-X-|ffconcat\b|file\s+['\"/\w]|\[playlist\]|\[reference\]|rtsptext|v=0\s|ism[lv]|#!)"
    rb"|<(mpd|smoothstreamingmedia|smil|asx|manifest|playlist|svg)\b|^#EXT",
    re.IGNORECASE | re.MULTILINE,
)
# What people send by mistake, by its first bytes. ffprobe would refuse it too, in words of its own.
_OTHER_THINGS = (
    (b"PK\x03\x04", "an archive"),
    (b"Rar!\x1a\x07", "an archive"),
    (b"7z\xbc\xaf\x27\x1c", "an archive"),
    (b"\x1f\x8b", "an archive"),
    (b"BZh", "an archive"),
    (b"\xfd7zXZ\x00", "an archive"),
    (b"\x28\xb5\x2f\xfd", "an archive"),
    (b"%PDF-", "a document"),
    (b"{\\rtf", "a document"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a document"),
    (b"\x7fELF", "a program"),
    (b"MZ", "a program"),
    (b"SQLite format 3\x00", "a database"),
    (b"\xff\xd8\xff", "a still picture"),
    (b"BM", "a still picture"),
    (b"II*\x00", "a still picture"),
    (b"MM\x00*", "a still picture"),
)
_STILL_BRANDS = frozenset({b"heic", b"heix", b"heim", b"heis", b"mif1", b"avif"})
_LOCKED_ENTRIES = frozenset({b"encv", b"enca", b"drmi", b"drms"})
_CONTAINERS = frozenset({b"moov", b"trak", b"mdia", b"minf", b"dinf", b"stbl", b"rmra", b"rmda"})
_KNOWN_ATOMS = frozenset({b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"pnot", b"moof", b"styp", b"sidx"})
_SELF_CONTAINED = 1
_MOST_BOXES = 20_000  # of headers read, so that a crafted file cannot keep us here


def check_head(path: Path) -> None:
    """Refuse what is empty, text, or would make ffmpeg open another file."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
        if not head:
            raise SourceEmpty("The file is empty.")
        if head.startswith(b"ID3"):
            # ffmpeg skips such a tag before it guesses the format; so do we.
            size = sum((byte & 0x7F) << shift for byte, shift in zip(head[6:10], (21, 14, 7, 0), strict=False))
            file.seek(10 + size)
            head = file.read(_HEAD)
        _check_text(head)
        if thing := _other_thing(head):
            raise SourceUnsupported(f"The file is {thing}, not a video.")
        if head[4:8] in _KNOWN_ATOMS:
            _check_references(file)


def written_bytes(path: Path) -> int:
    """Say where a file's bytes end and nothing but zeros follows: a download that made room first and broke off."""
    with path.open("rb") as file:
        whole = end = file.seek(0, 2)
        while end > 0:
            start = max(0, end - _STRETCH)
            file.seek(start)
            stretch = file.read(end - start)
            if kept := len(stretch.rstrip(b"\0")):
                return start + kept if whole - start - kept > _FEW_ZEROS else whole
            end = start
    return 0


def _check_text(head: bytes) -> None:
    if head.startswith(b"YUV4MPEG2 "):
        return  # its pictures are plain bytes: grey ones are letters
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        head = head.decode("utf-16", "replace").encode("utf-8", "replace")
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text and any(byte < 9 or (13 < byte < 32 and byte != 27) for byte in text[:2048]):
        # Binary; yet a playlist stays one for ffmpeg whatever follows its first line.
        if re.match(rb"#EXTM3U|ffconcat\b", text):
            raise SourceForbidden("The file is a playlist or a script that names other files, not a video.")
        return
    if _PLAYLISTS.search(text):
        raise SourceForbidden("The file is a playlist or a script that names other files, not a video.")
    if len(text) < _HEAD // 2 or _is_words(text):
        raise SourceUnreadable("The file holds text, not a video.")


def _other_thing(head: bytes) -> str:
    """Name what the file is instead of a video; empty when it may be one."""
    for magic, thing in _OTHER_THINGS:
        if head.startswith(magic):
            return thing
    if head[257:262] == b"ustar":
        return "an archive"
    if (head[:4] == b"RIFF" and head[8:12] == b"WEBP") or (head[4:8] == b"ftyp" and head[8:12] in _STILL_BRANDS):
        return "a still picture"
    if head.startswith(b"\x89PNG\r\n\x1a\n") and b"acTL" not in head:  # with it, it moves
        return "a still picture"
    return ""


def _is_words(text: bytes) -> bool:
    try:
        text[:-4].decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _check_references(file: BinaryIO) -> None:
    """Refuse a QuickTime or MP4 file whose media lie in another file, or are locked."""
    try:
        for kind, start, end in _boxes(file):
            # ffprobe names the codec that is locked away, not the lock.
            if kind == b"stsd" and _first_entries(file, start, end) & _LOCKED_ENTRIES:
                raise SourceEncrypted("The file is encrypted (DRM); send one that plays without a key.")
            if kind == b"dref" and _refers_out(file, start, end):
                raise SourceForbidden("The file refers to media in other files; send one that holds its own.")
            if kind == b"rdrf":
                raise SourceForbidden("The file only points to other movies; send one that holds its own media.")
    except (struct.error, OverflowError):
        return  # broken boxes: ffprobe says how, and opens nothing else


def _boxes(file: BinaryIO) -> Iterator[tuple[bytes, int, int]]:
    """Walk the boxes that lead to data references; media and tables are jumped over, never read."""
    whole = file.seek(0, 2)
    todo = [(0, whole)]
    described = False  # what comes after the movie's own description is media, in any number of fragments
    for _ in range(_MOST_BOXES):
        while todo and todo[-1][0] + 8 > todo[-1][1]:
            todo.pop()
        if not todo:
            return
        at, end = todo.pop()
        file.seek(at)
        size, kind = struct.unpack(">I4s", file.read(8))
        header = 8
        if size == 1:
            size, header = struct.unpack(">Q", file.read(8))[0], 16
        if size == 0:
            size = end - at
        if size < header:
            return
        todo.append((at + size, end))
        described = described or (kind == b"moov" and len(todo) == 1)
        inner = (at + header, min(at + size, end))
        if kind in _CONTAINERS:
            todo.append(inner)
        yield kind, *inner
    if not described or len(todo) > 1:
        raise SourceTooComplex("The file is a maze of boxes, not a video.")


def _first_entries(file: BinaryIO, start: int, end: int) -> set[bytes]:
    """Read the kinds of a track's first sample descriptions; honest ones have one or two."""
    kinds, at = set(), start + 8
    for _ in range(16):
        if at + 8 > end:
            break
        file.seek(at)
        size, kind = struct.unpack(">I4s", file.read(8))
        kinds.add(kind)
        at += max(size, 8)
    return kinds


def _refers_out(file: BinaryIO, start: int, end: int) -> bool:
    file.seek(start + 4)
    (count,) = struct.unpack(">I", file.read(4))
    at = start + 8
    for _ in range(min(count, 256)):
        if at + 12 > end:
            return False
        file.seek(at)
        size, kind, flags = struct.unpack(">I4sI", file.read(12))
        if not flags & _SELF_CONTAINED and kind in (b"url ", b"urn ", b"alis", b"rsrc"):
            return True
        at += max(size, 12)
    return False
