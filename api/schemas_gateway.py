"""The JSON of the worker gateway: what a worker asks and tells, and what it is answered."""

from datetime import datetime
from typing import Any, Literal

from pydantic import ConfigDict, Field

from api.claims import LONGEST
from api.schemas import WHEN, Answer, example
from contracts.gateway import LEAST_WAIT_S, MOST_WAIT_S, SOURCE_LIMITS, SourceLimits
from contracts.steps import StepProgress

CLAIM = "d3Ni…"
PROGRESS: dict[str, Any] = {
    "percent": 42.0,
    "frames": 630,
    "speed": 3.1,
    "qualities": [{"quality": "720p", "segments_total": 10, "segments_completed": 4, "percent": 42.0}],
}
_CLAIM = Field(max_length=LONGEST, description="As `claim` gave it; nobody else's")


def _asked(**fields: Any) -> ConfigDict:
    return ConfigDict(frozen=True, extra="forbid", json_schema_extra={"examples": [fields]})


class ClaimAsked(Answer):
    model_config = _asked(pool="cpu", wait_s=20)
    pool: Literal["cpu", "gpu", "probe"] = Field(default="cpu", description="Whose queue to wait in")
    wait_s: float = Field(
        default=20.0, ge=LEAST_WAIT_S, le=MOST_WAIT_S, description="How long; a second or two less before the 204"
    )


class Claimed(Answer):
    model_config = example(
        claim=CLAIM,
        activity="transcode_span",
        job_id=34,
        video_id=12,
        step_key="transcode:0+10:720p,480p",
        generation=0,
        attempt=1,
        queue="vlog-cpu",
        workflow_id="video-12-job-34",
        started_at=WHEN,
        heartbeat_timeout_s=30.0,
        progress_every_s=3.0,
        request={"job_id": 34, "video_id": 12, "source_key": "uploads/12.mp4"},
        limits=SOURCE_LIMITS,
    )
    claim: str = Field(description="Sealed: send it with everything about this step")
    activity: str = Field(description="`transcode_span`, `encode_audio`, `thumbnail`, `storyboard` or `probe`")
    job_id: int
    video_id: int
    step_key: str
    generation: int
    attempt: int
    queue: str
    workflow_id: str
    started_at: datetime
    heartbeat_timeout_s: float = Field(description="The claim is gone after so much silence")
    progress_every_s: float = Field(description="How often to call `progress`: a cancel is heard with the next one")
    request: dict[str, Any] = Field(description="What is to be done, as in `contracts/steps.py`")
    limits: SourceLimits = Field(description="What a source may have: a `probe` refuses one that has more")


class ProgressTold(Answer):
    model_config = _asked(claim=CLAIM, progress=PROGRESS)
    claim: str = _CLAIM
    progress: StepProgress | None = Field(default=None, description="None only holds the claim")


class ProgressHeard(Answer):
    model_config = example(cancel_requested=False, claim_expires_in_s=30.0)
    cancel_requested: bool = Field(description="Stop, and `fail` with the code CANCELLED")
    claim_expires_in_s: float


class CompleteTold(Answer):
    model_config = _asked(claim=CLAIM, result={"segments": 10, "encoded_frames": 1500})
    claim: str = _CLAIM
    result: dict[str, Any] = Field(description="The step's result, as in `contracts/steps.py`")


class FailTold(Answer):
    model_config = _asked(claim=CLAIM, code="ENCODER_CRASHED", error_message="ffmpeg crashed.", detail="…")
    claim: str = _CLAIM
    code: str = Field(
        default="INTERNAL_TRANSIENT",
        max_length=50,
        description="What it means is read from `contracts/errors.py`. DRAINED hands the step back at no attempt; "
        "CANCELLED answers `cancel_requested`",
    )
    error_message: str = Field(default="The worker gave no reason.", description="A sentence for people")
    detail: str = Field(default="", description="For engineers: the tail of stderr")
    retry_after_s: float | None = Field(
        default=None, description="For a code that means later: when", allow_inf_nan=False
    )
    retry_delay_s: float | None = Field(
        default=None, description="For one that is retried: when; else 5 s, doubling", allow_inf_nan=False
    )


class StepEnded(Answer):
    model_config = example(job_id=34, step_key="transcode:0+10:720p,480p", accepted=True)
    job_id: int
    step_key: str
    accepted: bool


class Stored(Answer):
    model_config = example(key="videos/my-holiday/r1/720p/seg_00003.m4s", created=True)
    key: str
    created: bool = Field(description="False: it was there already, and the first one stays")


class StoredObject(Answer):
    model_config = example(key="videos/my-holiday/r1/720p/init.mp4", size_bytes=801, modified_at=WHEN, etag="1f-2a")
    key: str
    size_bytes: int
    modified_at: datetime
    etag: str


class StoredObjects(Answer):
    model_config = example(items=[])
    items: tuple[StoredObject, ...]
