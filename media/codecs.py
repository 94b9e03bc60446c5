"""Codec strings (RFC 6381) from the boxes of a sample entry: what CODECS in a manifest must say, to the letter."""

from collections.abc import Mapping


def describe(entry: str, boxes: Mapping[bytes, bytes]) -> str:
    """Name the codec of one sample entry."""
    if entry in ("avc1", "avc3"):
        profile, constraints, level = boxes[b"avcC"][1:4]
        return f"{entry}.{profile:02X}{constraints:02X}{level:02X}"
    if entry in ("hvc1", "hev1"):
        return _hevc(entry, boxes[b"hvcC"])
    if entry == "av01":
        return _av1(boxes[b"av1C"])
    if entry == "mp4a":
        return _mp4a(boxes[b"esds"])
    return entry


def _hevc(entry: str, box: bytes) -> str:
    space, tier, profile = box[1] >> 6, (box[1] >> 5) & 1, box[1] & 0x1F
    # The compatibility flags are written with their bits in reverse order.
    compatible = int(f"{int.from_bytes(box[2:6], 'big'):032b}"[::-1], 2)
    constraints = box[6:12].rstrip(b"\0")
    parts = [f"{('', 'A', 'B', 'C')[space]}{profile}", f"{compatible:X}", f"{'H' if tier else 'L'}{box[12]}"]
    return ".".join([entry, *parts, *(f"{byte:X}" for byte in constraints)])


def _av1(box: bytes) -> str:
    profile, level = box[1] >> 5, box[1] & 0x1F
    tier, high, twelve = box[2] >> 7, (box[2] >> 6) & 1, (box[2] >> 5) & 1
    depth = 12 if twelve else 10 if high else 8
    return f"av01.{profile}.{level:02d}{'H' if tier else 'M'}.{depth:02d}"


def _mp4a(box: bytes) -> str:
    """Walk the descriptors: ES (3) holds DecoderConfig (4), which holds DecoderSpecificInfo (5)."""
    at = 4
    kind = 0
    object_type = 0
    while at < len(box):
        kind, at = box[at], at + 1
        size = 0
        while True:
            byte, at = box[at], at + 1
            size = size << 7 | (byte & 0x7F)
            if not byte & 0x80:
                break
        if kind == 3:
            at += 3
        elif kind == 4:
            object_type = box[at]
            at += 13
        elif kind == 5:
            audio_type = box[at] >> 3
            if audio_type == 31:
                audio_type = 32 + ((box[at] & 7) << 3 | box[at + 1] >> 5)
            return f"mp4a.{object_type:02X}.{audio_type}"
        else:
            at += size
    return f"mp4a.{object_type:02X}"
