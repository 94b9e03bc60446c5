"""Boxes built by hand, read back; and what is wrong with broken ones."""

import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.errors import OutputIncomplete
from contracts.media import FrameRate
from contracts.plan import Grid
from media import codecs
from media.boxes import InitFacts, canonical_init, read_init, read_segment
from media.verify import check_audio_segment, check_video_segment

SYNC, NOT_SYNC = 0x02000000, 0x01010000
PICTURES = InitFacts(timescale=30000, codecs="avc1.64001E", handler="vide", default_flags=NOT_SYNC)
SOUND = InitFacts(timescale=48000, codecs="mp4a.40.2", handler="soun")
GRID = Grid(frame_rate=FrameRate(num=30000, den=1001), frames=10, segment_frames=4)


def box(kind: str, *content: bytes) -> bytes:
    body = b"".join(content)
    return struct.pack(">I4s", len(body) + 8, kind.encode()) + body


def full(kind: str, version: int, flags: int, *content: bytes) -> bytes:
    return box(kind, struct.pack(">I", version << 24 | flags), *content)


def segment(
    tfdt: int, offsets: Sequence[int], duration: int = 1001, size: int = 10, *, media: int | None = None
) -> bytes:
    """A segment as our encoder makes it: durations and flags by default, a keyframe first."""
    rows = b"".join(struct.pack(">Ii", size, cts) for cts in offsets)
    traf = box(
        "traf",
        full("tfhd", 0, 0x28, struct.pack(">III", 1, duration, NOT_SYNC)),
        full("tfdt", 1, 0, struct.pack(">Q", tfdt)),
        full("trun", 1, 0xA05, struct.pack(">III", len(offsets), 0, SYNC), rows),
    )
    moof = box("moof", full("mfhd", 0, 0, struct.pack(">I", 1)), traf)
    return box("styp", b"msdh") + moof + box("mdat", bytes(len(offsets) * size if media is None else media))


def init(handler: str, entry: bytes, *, elst: int | None = None, more: bytes = b"") -> bytes:
    mdhd = full("mdhd", 0, 0, struct.pack(">IIIII", 0, 0, 30000, 0, 0))
    hdlr = full("hdlr", 0, 0, struct.pack(">I", 0), handler.encode(), bytes(12))
    stbl = box("stbl", full("stsd", 0, 0, struct.pack(">I", 1), entry), more)
    edts = box("edts", full("elst", 0, 0, struct.pack(">IIiI", 1, 0, elst, 1 << 16))) if elst is not None else b""
    trak = box("trak", edts, box("mdia", mdhd, hdlr, box("minf", stbl)))
    trex = full("trex", 0, 0, struct.pack(">IIIII", 1, 1, 1001, 7, NOT_SYNC))
    return box("ftyp", b"iso5") + box("moov", trak, box("mvex", trex))


AVC1 = box("avc1", bytes(24), struct.pack(">HH", 640, 360), bytes(50), box("avcC", bytes([1, 0x64, 0, 0x1E, 0xFF])))
ESDS = full("esds", 0, 0, bytes([3, 25, 0, 1, 0, 4, 17, 0x40, 0x15]) + bytes(11) + bytes([5, 2, 0x11, 0x90]))
MP4A = box("mp4a", bytes(16), struct.pack(">HHHHI", 2, 16, 0, 0, 48000 << 16), ESDS)


def test_an_init_segment_of_pictures() -> None:
    found = read_init(init("vide", AVC1, elst=0))
    assert (found.timescale, found.codecs, found.width, found.height) == (30000, "avc1.64001E", 640, 360)
    assert (found.default_duration, found.default_size, found.default_flags, found.edit_start) == (1001, 7, NOT_SYNC, 0)
    assert read_init(init("vide", AVC1, elst=2002)).edit_start == 2002


def test_an_init_segment_of_sound() -> None:
    found = read_init(init("soun", MP4A))
    assert (found.codecs, found.channels, found.sample_rate, found.handler) == ("mp4a.40.2", 2, 48000, "soun")


def test_an_init_with_and_without_an_empty_box_about_samples_is_the_same() -> None:
    """ffmpeg 7 writes it when the first segment has a picture that no other needs."""
    plain = init("vide", AVC1, elst=0)
    said = init("vide", AVC1, elst=0, more=full("sdtp", 0, 0))
    assert said != plain
    assert canonical_init(said) == canonical_init(plain) == plain
    assert read_init(canonical_init(said)) == read_init(said)
    # One that speaks of samples is another matter.
    spoken = init("vide", AVC1, elst=0, more=full("sdtp", 0, 0, b"\x20"))
    assert canonical_init(spoken) == spoken
    with pytest.raises(OutputIncomplete):
        canonical_init(plain[:-30])


@pytest.mark.parametrize("data", [b"", b"hello", box("ftyp"), box("ftyp") + box("moov"), init("vide", AVC1)[:-30]])
def test_what_is_no_init_segment_is_said_to_be_broken(data: bytes) -> None:
    with pytest.raises(OutputIncomplete):
        read_init(data)


def test_codec_strings_of_hevc_and_av1() -> None:
    hvcc = bytes([1, 0x01]) + bytes.fromhex("60000000") + bytes.fromhex("900000000000") + bytes([93])
    assert codecs.describe("hvc1", {b"hvcC": hvcc}) == "hvc1.1.6.L93.90"
    assert codecs.describe("av01", {b"av1C": bytes([0x81, 0x08, 0x0C, 0])}) == "av01.0.08M.08"
    assert codecs.describe("av01", {b"av1C": bytes([0x81, 0x0C, 0xCC, 0])}) == "av01.0.12H.10"


def test_a_segment_read_from_bytes_and_from_a_file_is_the_same(tmp_path: Path) -> None:
    data = segment(4004, [0, 1001, -1001, 0])
    path = tmp_path / "seg.m4s"
    path.write_bytes(data)
    found = read_segment(data, PICTURES)
    assert found == read_segment(path, PICTURES)
    assert (found.tfdt, found.samples, found.duration, found.moofs) == (4004, 4, 4004, 1)
    assert (found.first_cts, found.sync_samples, found.media_bytes, found.size_bytes) == (0, (0,), 40, len(data))


def test_a_segment_on_the_grid_passes() -> None:
    check_video_segment(segment(0, [0, 1001, -1001, 0]), PICTURES, GRID, 0)
    check_video_segment(segment(4004, [0, 0, 0, 0]), PICTURES, GRID, 1)
    check_video_segment(segment(8008, [0, 0]), PICTURES, GRID, 2)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (segment(0, [0, 0, 0]), "3 pictures instead of 4"),
        (segment(0, [0, 0, 0, 0, 0]), "5 pictures instead of 4"),
        (segment(1001, [0, 0, 0, 0]), "begins at 1001 instead of 0"),
        (segment(0, [0, 0, 0, 0], duration=1000), "not on the frame grid"),
        (segment(0, [2002, 2002, 2002, 2002]), "not on the frame grid"),
        (segment(0, [0, 1001, 0, 0]), "off the frame grid"),
        (segment(0, [0, 0, 0, 0], media=20), "20 bytes of media where 40"),
        (segment(0, [0, 0, 0, 0])[:-1], "cut off"),
        (segment(0, [0, 0]) + segment(2002, [0, 0]), "2 pieces"),
        (segment(0, [0, 0]) + segment(9009, [0, 0]), "do not follow"),
        (b"", "it is empty"),
        (segment(0, []), "no pictures"),
        (b"#EXTM3U\n" * 4, "cut off"),
    ],
)
def test_a_segment_off_the_grid_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(OutputIncomplete, match=words):
        check_video_segment(data, PICTURES, GRID, 0)


def test_a_keyframe_in_the_middle_is_refused() -> None:
    with pytest.raises(OutputIncomplete, match="keyframes at"):
        all_sync = segment(0, [0, 0, 0, 0]).replace(struct.pack(">I", NOT_SYNC), struct.pack(">I", SYNC))
        check_video_segment(all_sync, PICTURES, GRID, 0)


def test_an_edit_list_that_shifts_is_refused() -> None:
    with pytest.raises(OutputIncomplete, match="edit list"):
        check_video_segment(segment(0, [0, 0, 0, 0]), replace(PICTURES, edit_start=2002), GRID, 0)


def test_sound_must_follow_sound() -> None:
    first = check_audio_segment(segment(0, [0] * 10, duration=1024), SOUND, None)
    check_audio_segment(segment(10240, [0] * 10, duration=1024), SOUND, first.tfdt + first.duration)
    with pytest.raises(OutputIncomplete, match="begins at 91 instead of 0"):
        check_audio_segment(segment(91, [0] * 10, duration=1024), SOUND, None)


def test_a_table_that_claims_to_be_endless_is_refused_at_once() -> None:
    whole = segment(0, [0, 0, 0, 0])
    at = whole.index(b"trun") + 4
    endless = whole[:at] + struct.pack(">II", 0, 0xFFFFFFFF) + whole[at + 8 :]
    with pytest.raises(OutputIncomplete, match="absurdly long"):
        read_segment(endless, PICTURES)


@given(st.binary(max_size=300), st.integers(0, 250))
def test_no_bytes_make_the_reader_fail_otherwise(noise: bytes, at: int) -> None:
    whole = segment(0, [0, 0, 0, 0])
    for data in (noise, whole[:at] + noise + whole[at:], whole[:at]):
        for read in (lambda data: read_segment(data, PICTURES), read_init):
            try:
                read(data)
            except OutputIncomplete:
                continue
