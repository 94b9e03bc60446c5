"""What the API's worker gateway and a worker that reaches nothing but the API agree on."""

from dataclasses import dataclass

from contracts.message import Message
from contracts.queues import Pool
from contracts.steps import (
    EncodeAudio,
    EncodedAudio,
    MadeStoryboard,
    MadeThumbnail,
    MakeStoryboard,
    MakeThumbnail,
    StepRequest,
    TranscodedSpan,
    TranscodeSpan,
)

KEY_HEADER = "X-Worker-API-Key"
CLAIM_HEADER = "X-Worker-Claim"
CHECKSUM_HEADER = "X-Content-SHA256"  # in hex

REMOTE_POOLS = (Pool.CPU, Pool.GPU)  # the steps of the others write to Postgres

# Of a long poll. Temporal refuses a shorter one, and caps one near a minute.
LEAST_WAIT_S, MOST_WAIT_S = 3.0, 30.0
# A cancel is heard with the next progress call.
PROGRESS_EVERY_S = 3.0

CANCELLED = "CANCELLED"  # the code by which a worker says that it stopped a step because it was told to


@dataclass(frozen=True)
class RemoteStep:
    request: type[StepRequest]
    result: type[Message]


# By the names that Temporal knows the activities by.
REMOTE_STEPS = {
    "transcode_span": RemoteStep(TranscodeSpan, TranscodedSpan),
    "encode_audio": RemoteStep(EncodeAudio, EncodedAudio),
    "thumbnail": RemoteStep(MakeThumbnail, MadeThumbnail),
    "storyboard": RemoteStep(MakeStoryboard, MadeStoryboard),
}
