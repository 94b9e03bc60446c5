"""What one step is likely to take of its worker, told from its request: slots, memory, room on the disk. Pure.

Estimates. `media.limits` has what an encoder is allowed at most; here is what such work has been seen to use.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from contracts.media import VideoFacts
from contracts.plan import Capacity, PlannedRendition
from contracts.queues import share_of
from contracts.remux_steps import Remux
from contracts.states import Codec
from contracts.steps import EncodeAudio, MakeStoryboard, MakeThumbnail, TranscodeSpan

MIB = 1 << 20

# Encoding, by the pixels of a picture: H.264's are the measure, and a decode costs a quarter of them.
_EFFORT = {Codec.H264: 1.0, Codec.HEVC: 2.0, Codec.AV1: 2.0}
_DECODE_EFFORT = 0.25
# The rungs of a 1080p video and the decode they share: what a slot is cut for.
SLOT_EFFORT = 4.15e6

# A third more than was measured with preset medium: 701 MB for the rungs of 1080p, 2680 MB for those of 2160p.
_BASE_BYTES = 96 * MIB
_DECODED_BYTES_PER_PIXEL = 65
_ENCODED_BYTES_PER_PIXEL = {Codec.H264: 190, Codec.HEVC: 275, Codec.AV1: 550}

# Rates are caps, and yet a segment may exceed its own for a moment; containers and init segments come on top.
_SCRATCH_SAFETY = 1.25
_SCRATCH_BASE_BYTES = 8 * MIB
_PICTURES_BYTES = 64 * MIB


@dataclass(frozen=True)
class Need:
    slots: int = 1
    memory_bytes: int = 0
    scratch_bytes: int = 0


def need_of(request: object) -> Need:
    """Estimate a step; what neither encodes nor writes needs a slot and nothing else."""
    match request:
        case TranscodeSpan():
            return Need(
                slots=slots_taken(request.video, request.renditions),
                memory_bytes=encoder_memory(request.video, request.renditions),
                scratch_bytes=_span_bytes(request),
            )
        case EncodeAudio():
            return Need(1, _BASE_BYTES, _stored(request.grid.duration_s, request.audio.kbps))
        case MakeThumbnail() | MakeStoryboard():
            return Need(1, encoder_memory(request.video, ()), _PICTURES_BYTES)
        case Remux():
            return Need(1, _BASE_BYTES, int(request.facts.size_bytes * 1.05) + _SCRATCH_BASE_BYTES)
        case _:
            return Need()


def slots_taken(video: VideoFacts, renditions: Iterable[PlannedRendition]) -> int:
    """Say how many slots a list of qualities takes: the rungs of a 1080p video one, of a 2160p video four.

    On a device the encoders are its own, and a slot is one of its sessions.
    """
    effort = sum(one.width * one.height * _EFFORT[one.codec] for one in renditions if not one.gpu)
    if not effort:
        return 1
    return max(1, round((effort + video.width * video.height * _DECODE_EFFORT) / SLOT_EFFORT))


def encoder_memory(video: VideoFacts, renditions: Iterable[PlannedRendition]) -> int:
    decoding = video.width * video.height * _DECODED_BYTES_PER_PIXEL
    encoding = sum(one.width * one.height * _ENCODED_BYTES_PER_PIXEL[one.codec] for one in renditions if not one.gpu)
    return _BASE_BYTES + decoding + encoding


def at_once(capacity: Capacity, slots: int) -> int:
    """Say how many steps that take so many slots run at once: a worker asks for more while it has any slot left."""
    return sum(-(-each // share_of(each, slots)) for each in capacity.each or (capacity.slots,))


def _span_bytes(request: TranscodeSpan) -> int:
    seconds = request.grid.seconds(request.span.segments * request.grid.segment_frames)
    return _stored(seconds, sum(one.video_kbps for one in request.renditions))


def _stored(seconds: float, kbps: int) -> int:
    return int(seconds * kbps * 1000 / 8 * _SCRATCH_SAFETY) + _SCRATCH_BASE_BYTES
