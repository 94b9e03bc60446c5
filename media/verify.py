"""Is it what it should be? Segments by their boxes, before they are stored; a whole stream by decoding all of it."""

from pathlib import Path

from contracts.errors import OutputIncomplete
from contracts.plan import Grid
from media.boxes import InitFacts, NoSamples, SegmentFacts, read_segment
from media.streams import StreamReport, verify_stream

__all__ = [
    "PicturesMissing",
    "StreamReport",
    "check_audio_segment",
    "check_video_segment",
    "has_sound",
    "verify_stream",
]

_BEFORE_ZERO = 1 << 63  # a negative time, written without a sign


class PicturesMissing(OutputIncomplete):
    """What is there may be right, but it begins too late or ends too early: the source gave no more from there on."""


def check_video_segment(data: bytes | Path, init: InitFacts, grid: Grid, index: int) -> SegmentFacts:
    """Insist that this is exactly segment `index` of the grid: its pictures, at their times, after one keyframe."""
    try:
        found = read_segment(data, init)
    except NoSamples as error:
        raise PicturesMissing(f"Segment {index} has no pictures.") from error
    frame = init.timescale / grid.frame_rate.fraction
    if init.handler != "vide" or frame.denominator != 1:
        raise OutputIncomplete("The init segment does not fit the frame grid.")
    if init.edit_start:
        raise OutputIncomplete("The init segment shifts the pictures by an edit list.")
    duration = int(frame)
    frames = grid.frames_in(index)
    start = index * grid.segment_frames * duration
    if found.samples != frames:
        fault = PicturesMissing if found.samples < frames else OutputIncomplete
        raise fault(f"Segment {index} has {found.samples} pictures instead of {frames}.")
    if found.tfdt != start:
        fault = PicturesMissing if found.tfdt > start else OutputIncomplete
        raise fault(f"Segment {index} begins at {found.tfdt} instead of {start}.")
    if found.moofs != 1:
        raise OutputIncomplete(f"Segment {index} is in {found.moofs} pieces.")
    if found.duration != frames * duration or found.first_cts != 0:
        raise OutputIncomplete(f"Segment {index} is not on the frame grid.")
    if sorted(found.times) != [start + n * duration for n in range(frames)]:
        raise OutputIncomplete(f"Segment {index} shows pictures off the frame grid.")
    if found.sync_samples != (0,):
        raise OutputIncomplete(f"Segment {index} has keyframes at {found.sync_samples} instead of its start only.")
    return found


def check_audio_segment(data: bytes | Path, init: InitFacts, expected_tfdt: int | None) -> SegmentFacts:
    """Insist that this segment follows the one before it; None for the first, which begins at 0."""
    found = read_segment(data, init)
    if init.handler != "soun" or init.edit_start:
        raise OutputIncomplete("The init segment of the sound is not what it should be.")
    expected = expected_tfdt or 0
    if found.tfdt != expected:
        raise OutputIncomplete(f"A segment of sound begins at {found.tfdt} instead of {expected}.")
    if found.moofs != 1 or found.duration <= 0:
        raise OutputIncomplete("A segment of sound is not whole.")
    return found


def has_sound(data: bytes | Path) -> bool:
    """Tell a track's first segment from what ffmpeg writes when it could decode nothing of the track.

    That is an empty shell, or mere padding; padding alone was never laid on the clock and begins before 0.
    """
    try:
        return read_segment(data).tfdt < _BEFORE_ZERO
    except NoSamples:
        return False
