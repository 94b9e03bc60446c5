"""A claim: one attempt of a step, sealed for the worker that holds it. Pure.

It travels through the worker and back, so that no API process has to remember it. The seal names the worker: with
another's claim, or a changed one, nothing can be done.
"""

import base64
import binascii
import hashlib
import hmac
import math
import re
from dataclasses import dataclass
from datetime import datetime

from pydantic import ConfigDict

from api.errors import ApiError
from contracts.gateway import REMOTE_STEPS
from contracts.ids import JobId, VideoId
from contracts.layout import (
    INIT,
    STORYBOARD,
    THUMBNAIL,
    rendition_prefix,
    segment_index,
    segment_name,
    timeline_key,
    video_prefix,
)
from contracts.message import Message
from contracts.plan import Span
from contracts.renditions import AudioTimeline
from contracts.states import StepName
from contracts.steps import (
    EncodeAudio,
    EncodedAudio,
    MadeStoryboard,
    MadeThumbnail,
    MakeStoryboard,
    MakeThumbnail,
    Probe,
    QualityProgress,
    StepProgress,
    StepRequest,
    TranscodedSpan,
    TranscodeSpan,
)
from mirror.claims import StepClaim, WorkerIdentity

LONGEST = 16_384  # of a claim, in characters
SEGMENT_BYTES = 512 << 20  # 30 seconds, the longest, at 140 Mbit/s
PICTURE_BYTES = 32 << 20
SMALL_BYTES = 4 << 20  # init segments, timelines, cues

_SHEET = re.compile(r"storyboard_\d{3,6}\.jpg")
_MOST_FRAMES, _MOST_SPEED, _MOST_TILES = 1 << 40, 1e6, 1_000_000
_DIGEST = hashlib.sha256
_DIGEST_BYTES = 32


class Held(Message):
    """What is sealed: Temporal's token, the attempt as the mirror knows it, and what of storage it is about."""

    model_config = ConfigDict(frozen=True, extra="ignore", ser_json_bytes="base64", val_json_bytes="base64")

    token: bytes
    activity: str
    job_id: JobId
    video_id: VideoId
    step: StepName
    step_key: str
    generation: int
    attempt: int
    started_at: datetime
    scheduled_at: datetime | None = None
    qualities: tuple[str, ...] = ()
    span: Span | None = None
    tries_before: int = 0
    max_attempts: int = 0
    gives_up_on: tuple[str, ...] = ()  # codes that the workflow wants to see at once
    queue: str
    slots: int = 1
    heartbeat_timeout_s: float
    workflow_id: str = ""
    source_key: str
    folders: tuple[str, ...]  # that it may write to

    def claim_by(self, worker: WorkerIdentity) -> StepClaim:
        """Tell the mirror's recorder of it."""
        same = {name: getattr(self, name) for name in StepClaim.__dataclass_fields__ if name != "held_by"}
        return StepClaim(**same, held_by=worker)


@dataclass(frozen=True)
class Place:
    """How a step may write one key."""

    create_only: bool
    most_bytes: int
    model: type[Message] | None = None  # what it must be readable as: our own processes read it


def source_of(request: StepRequest) -> str:
    assert isinstance(request, TranscodeSpan | EncodeAudio | MakeThumbnail | MakeStoryboard | Probe)
    return request.source_key


def folders_of(request: StepRequest) -> tuple[str, ...]:
    """Name the folders that a step writes to."""
    match request:
        case TranscodeSpan():
            return tuple(
                rendition_prefix(request.slug, request.output, r.quality, r.generation) for r in request.renditions
            )
        case EncodeAudio():
            return (request.prefix,)
        case MakeThumbnail() | MakeStoryboard():
            return (video_prefix(request.slug),)
        case _:
            return ()


def place(held: Held, key: str) -> Place | None:
    """Say how a step may write a key; None when it may not. Keys are compared, never interpreted: no trick helps."""
    folder, slash, name = key.rpartition("/")
    if held.activity == "encode_audio" and key == timeline_key(
        held.folders[0], held.job_id, held.generation, held.attempt
    ):
        return Place(create_only=False, most_bytes=SMALL_BYTES, model=AudioTimeline)
    if folder + slash not in held.folders:
        return None
    match held.activity:
        case "transcode_span" | "encode_audio":
            if name == INIT:
                return Place(create_only=True, most_bytes=SMALL_BYTES)
            return Place(create_only=True, most_bytes=SEGMENT_BYTES) if _is_its_segment(held, name) else None
        case "thumbnail" if name == THUMBNAIL:
            return Place(create_only=False, most_bytes=PICTURE_BYTES)
        case "storyboard" if name == STORYBOARD:
            return Place(create_only=False, most_bytes=SMALL_BYTES)
        case "storyboard" if _SHEET.fullmatch(name):
            return Place(create_only=False, most_bytes=PICTURE_BYTES)
        case _:
            return None


def _is_its_segment(held: Held, name: str) -> bool:
    index = segment_index(name)
    if index is None or name != segment_name(index):
        return False
    return held.span is None or 0 <= index - held.span.first_segment < held.span.segments


def checked_result(held: Held, said: object) -> Message:
    """Read a step's result by its own model; one that names what the step was not about is none. Raises ValueError."""
    result = REMOTE_STEPS[held.activity].result.model_validate(said)
    match result:
        case EncodedAudio():
            fits = result.prefix == held.folders[0] and f"audio:{result.track}" == held.step_key
            fits = fits and result.segments == sum(count for _, count in result.segment_durations)
        case MadeThumbnail():
            fits = result.key == held.folders[0] + THUMBNAIL and math.isfinite(result.at_s)
        case TranscodedSpan():
            made = len(held.qualities) * held.span.segments if held.span else 0
            fits = 0 <= result.segments <= made and 0 <= result.encoded_frames <= _MOST_FRAMES
        case MadeStoryboard():
            fits = min(result.sheets, result.tiles) >= 0 and math.isfinite(result.interval_s)
            fits = fits and max(result.sheets, result.tiles) <= _MOST_TILES
        case _:
            fits = True
    if not fits:
        raise ValueError("The result is of another step.")
    return result


def checked_progress(held: Held, said: StepProgress) -> StepProgress:
    """Keep of what a worker tells what can be true of its step: people see it, and players are led by it."""
    total = held.span.segments if held.span else 0
    known = {quality.quality: quality for quality in said.qualities}
    return StepProgress(
        percent=_between(said.percent, 100.0),
        frames=max(0, min(said.frames, _MOST_FRAMES)),
        speed=_between(said.speed, _MOST_SPEED),
        qualities=tuple(
            QualityProgress(
                quality=name,
                segments_total=total,
                segments_completed=max(0, min(known[name].segments_completed, total)),
                percent=_between(known[name].percent, 100.0),
            )
            for name in held.qualities
            if name in known
        ),
    )


def _between(value: float, most: float) -> float:
    return min(max(value, 0.0), most) if math.isfinite(value) else 0.0


class Seal:
    """Seals claims with a key that every API process has."""

    def __init__(self, key: str) -> None:
        self._key = hashlib.sha256(b"vlog claim\0" + key.encode()).digest()

    def close(self, held: Held, worker_id: str) -> str:
        body = held.model_dump_json(exclude_defaults=True).encode()
        return base64.urlsafe_b64encode(self._mark(worker_id, body) + body).decode()

    def open(self, claim: str, worker_id: str) -> Held:
        """Give what was sealed for this worker; anything else is refused, whatever is wrong with it."""
        try:
            sealed = base64.b64decode(claim.encode("ascii"), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            sealed = b""
        mark, body = sealed[:_DIGEST_BYTES], sealed[_DIGEST_BYTES:]
        if not hmac.compare_digest(mark, self._mark(worker_id, body)):
            raise ApiError(403, "CLAIM_NOT_YOURS", "This is no claim of this worker's.")
        return Held.model_validate_json(body)

    def _mark(self, worker_id: str, body: bytes) -> bytes:
        return hmac.new(self._key, worker_id.encode() + b"\0" + body, _DIGEST).digest()
