"""Refuse, by what a file declares of its streams, what would come out wrong or cost too much. Pure."""

from typing import Any

from contracts.errors import SourceEncrypted, SourceTooComplex, SourceUnsupported
from media.limits import Limits

Stream = dict[str, Any]  # one entry of ffprobe's `streams`

# Sample entries of locked media: Common Encryption's, and what Apple and Adobe used before it.
_LOCKED_TAGS = frozenset({"encv", "enca", "enct", "encs", "drms", "drmi", "drmt"})
# Matrices that no scaler here can read, and that look like no other: taken for one, they come out in false colours.
_UNREADABLE_MATRICES = frozenset({"ycgco", "ycgco-re", "ycgco-ro", "ictcp", "ipt-c2"})
_SINGLE_LAYER_ONLY = 5  # Dolby Vision's own colours, without a layer that other decoders understand


def check_streams(streams: list[Stream], limits: Limits) -> None:
    """Refuse too many streams, locked ones, and colours that we could only get wrong."""
    # Attachments are fonts and covers: an honest film may carry fifty, and nobody decodes them.
    limits.check_streams(sum(stream.get("codec_type") != "attachment" for stream in streams))
    for stream in streams:
        if stream.get("codec_type") in ("video", "audio") and _is_locked(stream):
            raise SourceEncrypted("The file is encrypted (DRM); send one that plays without a key.")


def check_video(stream: Stream, size_bytes: int, limits: Limits) -> None:
    """Refuse the main video when its pictures are too large or too many, or its colours are Dolby's alone."""
    declared = _whole(stream.get("nb_frames")) or 0
    if declared > max(size_bytes, 1):
        # A table without entries declares millions of pictures in a few bytes; readers then make room for them all.
        raise SourceTooComplex(f"The file declares {declared} pictures, which is more than it has bytes.")
    limits.check_size(int(stream.get("width") or 0), int(stream.get("height") or 0))
    if (matrix := stream.get("color_space")) in _UNREADABLE_MATRICES:
        raise SourceUnsupported(f"The colours are kept as {matrix}, which cannot be read here; send a usual kind.")
    for side in stream.get("side_data_list", []):
        profile, base = _whole(side.get("dv_profile")), _whole(side.get("dv_bl_signal_compatibility_id"))
        if profile == _SINGLE_LAYER_ONLY or (profile is not None and profile >= 10 and base == 0):
            # Decoded as ordinary HEVC its people are green and purple.
            raise SourceUnsupported(
                f"The video is Dolby Vision of profile {profile}, which only Dolby's own decoders show in its colours; "
                "send one with an HDR10 or HLG base, such as profile 8."
            )


def _is_locked(stream: Stream) -> bool:
    tags = {key.lower() for key in stream.get("tags", {})}
    sides = {str(side.get("side_data_type", "")).lower() for side in stream.get("side_data_list", [])}
    return (
        stream.get("codec_tag_string") in _LOCKED_TAGS
        or "enc_key_id" in tags  # Matroska's, as ffprobe tells it
        or any(side.startswith("encryption") for side in sides)
    )


def _whole(value: object) -> int | None:
    try:
        return int(str(value))
    except ValueError:
        return None
