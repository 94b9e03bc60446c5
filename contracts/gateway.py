"""What the API's worker gateway and a worker that reaches nothing but the API agree on."""

from dataclasses import dataclass
from typing import Any

from pydantic import ConfigDict

from contracts.media import SourceFacts
from contracts.message import Message
from contracts.queues import Pool
from contracts.steps import (
    EncodeAudio,
    EncodedAudio,
    MadeStoryboard,
    MadeThumbnail,
    MakeStoryboard,
    MakeThumbnail,
    Probe,
    StepRequest,
    TranscodedSpan,
    TranscodeSpan,
)

KEY_HEADER = "X-Worker-API-Key"
CLAIM_HEADER = "X-Worker-Claim"
CHECKSUM_HEADER = "X-Content-SHA256"  # in hex

REMOTE_POOLS = (Pool.CPU, Pool.GPU, Pool.PROBE)  # the steps of the others read or write Postgres

# Of a long poll. Temporal refuses a shorter one, and caps one near a minute, which is when proxies hang up, too.
LEAST_WAIT_S, MOST_WAIT_S = 3.0, 50.0
# A cancel is heard with the next progress call.
PROGRESS_EVERY_S = 3.0

CANCELLED = "CANCELLED"  # the code by which a worker says that it stopped a step because it was told to


SOURCE_LIMITS: dict[str, Any] = {  # those that nobody has changed
    "max_pixels": 35_389_440,
    "max_frame_rate": 1000.0,
    "max_streams": 200,
    "max_duration_seconds": 90_000.0,
    "least_complete": 0.5,
}


class SourceLimits(Message):
    """What the service takes of a source: its settings of these names, whatever a worker's own say."""

    model_config = ConfigDict(json_schema_extra={"examples": [SOURCE_LIMITS]})

    max_pixels: int
    max_frame_rate: float
    max_streams: int
    max_duration_seconds: float
    least_complete: float


@dataclass(frozen=True)
class RemoteStep:
    request: type[StepRequest]
    result: type[Message]


# By the names that Temporal knows the activities by.
REMOTE_STEPS = {
    "probe": RemoteStep(Probe, SourceFacts),
    "transcode_span": RemoteStep(TranscodeSpan, TranscodedSpan),
    "encode_audio": RemoteStep(EncodeAudio, EncodedAudio),
    "thumbnail": RemoteStep(MakeThumbnail, MadeThumbnail),
    "storyboard": RemoteStep(MakeStoryboard, MadeStoryboard),
}
