"""What a file's first bytes give away."""

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.errors import (
    SourceEmpty,
    SourceEncrypted,
    SourceError,
    SourceForbidden,
    SourceTooComplex,
    SourceUnreadable,
    SourceUnsupported,
)
from media import sniff
from tests.support import crafted

DREF = struct.pack(">II4sI", 1, 12, b"url ", 1)


def atom(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I4s", len(content) + 8, kind) + content


def movie(dref: bytes) -> bytes:
    inner = atom(b"dref", bytes(4) + dref)
    for kind in (b"dinf", b"minf", b"mdia", b"trak", b"moov"):
        inner = atom(kind, inner)
    return atom(b"ftyp", b"isom\0\0\0\0") + atom(b"mdat", bytes(500)) + inner


def check(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    sniff.check_head(path)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", SourceEmpty),
        (b"   \n", SourceUnreadable),
        (b"hello", SourceUnreadable),
        ("Grüße, schön".encode("utf-16"), SourceUnreadable),
        ("ein längerer Text. ".encode() * 2000, SourceUnreadable),
        (b"\xef\xbb\xbf#EXTM3U\n", SourceForbidden),
        (b"\n\n#EXTM3U\nx.ts", SourceForbidden),
        (b"#EXTM3U\n" + bytes(range(256)), SourceForbidden),
        (b"ffconcat version 1.0\nfile x.mp4", SourceForbidden),
        (b"file '/etc/passwd'", SourceForbidden),
        (b"v=0\r\no=- 0 0 IN IP4 1.2.3.4\r\n", SourceForbidden),
        (b"<?xml version='1.0'?><MPD/>", SourceForbidden),
        (b"#!/bin/sh\n", SourceForbidden),
        (b"ID3\x04\0\0\0\0\0\x05.....#EXTM3U\n", SourceForbidden),
    ],
)
def test_scripts_and_text_are_told_apart(tmp_path: Path, data: bytes, error: type[SourceError]) -> None:
    with pytest.raises(error):
        check(tmp_path / "upload", data)


@pytest.mark.parametrize(
    "data",
    [
        movie(DREF),
        b"\x1a\x45\xdf\xa3" + bytes(100),
        b"YUV4MPEG2 W640 H360 F30:1\nFRAME\n" + bytes([16]) * 5000,
        b"GIF89a" + bytes(range(64)),
        bytes(1000),
        b"YUV4MPEG2 W320 H180 F25:1\nFRAME\n" + b"d" * 20_000,
    ],
)
def test_containers_are_left_to_ffprobe(tmp_path: Path, data: bytes) -> None:
    check(tmp_path / "upload", data)


@pytest.mark.parametrize("kind", [b"url ", b"urn ", b"alis"])
def test_media_in_another_file_are_refused(tmp_path: Path, kind: bytes) -> None:
    with pytest.raises(SourceForbidden):
        check(tmp_path / "upload", movie(struct.pack(">II4sI", 1, 12, kind, 0)))


def test_a_second_reference_does_not_hide_behind_a_good_one(tmp_path: Path) -> None:
    two = struct.pack(">II4sI", 2, 12, b"url ", 1) + struct.pack(">I4sI", 20, b"url ", 0) + b"file:///"
    with pytest.raises(SourceForbidden):
        check(tmp_path / "upload", movie(two))


@given(st.binary(max_size=400), st.integers(0, 300))
def test_no_bytes_make_the_look_fail_otherwise(tmp_path_factory: pytest.TempPathFactory, noise: bytes, at: int) -> None:
    whole = movie(DREF)
    path = tmp_path_factory.getbasetemp() / "noise"
    for data in (noise, whole[:at] + noise + whole[at:], atom(b"ftyp", noise) + noise):
        try:
            check(path, data)
        except SourceError:
            continue


@pytest.mark.parametrize("kind", [b"encv", b"enca", b"drmi"])
def test_locked_media_are_told(tmp_path: Path, kind: bytes) -> None:
    with pytest.raises(SourceEncrypted):
        check(tmp_path / "upload", crafted.movie().replace(b"jpeg", kind))


@pytest.mark.parametrize(
    "data",
    [b"PK\x03\x04" + bytes(99), bytes(257) + b"ustar" + bytes(99), b"%PDF-1.4\n\x01", b"\xff\xd8\xff" + bytes(99)],
)
def test_other_things_are_told_by_name(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(SourceUnsupported, match="not a video"):
        check(tmp_path / "upload", data)


def test_many_fragments_are_no_maze(tmp_path: Path) -> None:
    check(tmp_path / "upload", movie(DREF) + (atom(b"moof", b"") + atom(b"mdat", b"")) * 15_000)
    with pytest.raises(SourceTooComplex):
        check(tmp_path / "upload", crafted.crowded(25_000))


@given(st.lists(st.tuples(st.integers(0, 10_000), st.binary(min_size=1, max_size=9)), max_size=12))
def test_no_change_to_a_real_header_makes_the_look_fail_otherwise(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, bytes]]
) -> None:
    data = bytearray(crafted.movie(tracks=3))
    for place, put in changes:
        at = place % len(data)
        data[at : at + len(put)] = put
    path = tmp_path_factory.getbasetemp() / "changed"
    try:
        check(path, bytes(data))
    except SourceError:
        return


@pytest.mark.parametrize(("zeros", "kept"), [(0, 5000), (100, 5100), (10_000, 5000), (3_000_000, 5000)])
def test_a_tail_of_zeros_was_never_written(tmp_path: Path, zeros: int, kept: int) -> None:
    path = tmp_path / "upload"
    path.write_bytes(b"x" * 5000 + bytes(zeros))
    assert sniff.written_bytes(path) == kept


def test_nothing_that_names_other_files_is_on_the_list_of_formats() -> None:
    formats = set(sniff.FORMATS.split(","))
    assert not formats & {
        "hls",
        "applehttp",
        "concat",
        "dash",
        "sdp",
        "rtsp",
        "rtp",
        "image2",
        "lavfi",
        "webm_dash_manifest",
    }
