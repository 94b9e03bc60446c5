"""Look at a file's own bytes before ffmpeg does: what is refused here was never opened by it.

A playlist or a script makes ffmpeg open what it names. `-format_whitelist` stops that too; this says it in words.
"""

import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from contracts.errors import SourceEmpty, SourceForbidden, SourceUnreadable

# Containers that hold their own media. Nothing that names other files (hls, dash, concat, sdp, image2 with its
# patterns, rtsp, webm_dash_manifest, imf), and no device. Audio ones are here to be refused in words.
FORMATS = (
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg,mpegvideo,flv,live_flv,asf,asf_o,ogg,gif,apng,mxf,mxf_opatom,"
    "yuv4mpegpipe,nut,dv,rm,wtv,ivf,obu,h264,hevc,m4v,av1,mjpeg,mp3,aac,ac3,eac3,flac,wav,w64,aiff,caf,amr,dts,ape,wv,tta"
)

# Put before `-i` in every call of ffmpeg and ffprobe that reads what a stranger sent.
SAFE_INPUT = {"protocol_whitelist": "file", "format_whitelist": FORMATS}

_HEAD = 1 << 14
_PLAYLISTS = re.compile(
    rb"\A(#EXTM3U|#EXT-X-|ffconcat\b|file\s+['\"/\w]|\[playlist\]|\[reference\]|rtsptext|v=0\s|ism[lv]|#!)"
    rb"|<(mpd|smoothstreamingmedia|smil|asx|manifest|playlist|svg)\b|^#EXT",
    re.IGNORECASE | re.MULTILINE,
)
_CONTAINERS = frozenset({b"moov", b"trak", b"mdia", b"minf", b"dinf", b"moof", b"rmra", b"rmda"})
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
        if head[4:8] in _KNOWN_ATOMS:
            _check_references(file)


def _check_text(head: bytes) -> None:
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


def _is_words(text: bytes) -> bool:
    try:
        text[:-4].decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _check_references(file: BinaryIO) -> None:
    """Refuse a QuickTime or MP4 file whose media lie in another file."""
    try:
        for kind, start, end in _boxes(file):
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
        inner = (at + header, min(at + size, end))
        if kind in _CONTAINERS:
            todo.append(inner)
        yield kind, *inner


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
