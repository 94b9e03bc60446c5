"""The JSON of one job: its state, the attempts of its steps, its events."""

from datetime import datetime
from typing import Any

from pydantic import Field

from api.schemas import QUALITY, WHEN, Answer, QualityProgress, example
from contracts.plan import Span
from contracts.states import EventLevel, JobKind, JobState, StepName, StepOutcome, Tier


class Job(Answer):
    model_config = example(
        job_id=34,
        video_id=12,
        state="claimed",
        kind="upload",
        continues_job_id=None,
        output="r1",
        current_step="transcode",
        progress_percent=42,
        progress_current=8,
        progress_total=20,
        attempt_number=1,
        max_attempts=3,
        last_error=None,
        error_code=None,
        worker_id="w-3f2a",
        claimed_at=WHEN,
        claim_expires_at=WHEN,
        created_at=WHEN,
        started_at=WHEN,
        completed_at=None,
        cancelled_at=None,
        cancel_requested_at=None,
        paused_at=None,
        workflow_id="video-12-job-34",
        owner="ana",
        tier="creator",
        notes=["1440p and 2160p are larger than the source and were skipped."],
        qualities=[QUALITY],
    )
    job_id: int
    video_id: int
    state: JobState
    kind: JobKind
    continues_job_id: int | None = Field(description="The job whose plan this one keeps to")
    output: str = Field(description="The folder of its renditions")
    current_step: StepName | None
    progress_percent: float
    progress_current: int = Field(description="Segments done, over all qualities")
    progress_total: int
    attempt_number: int
    max_attempts: int
    last_error: str | None
    error_code: str | None
    worker_id: str | None
    claimed_at: datetime | None
    claim_expires_at: datetime | None
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    cancelled_at: datetime | None
    cancel_requested_at: datetime | None = Field(description="Somebody asked; `cancelled_at` says that it is done")
    paused_at: datetime | None
    workflow_id: str | None
    owner: str
    tier: Tier
    notes: tuple[str, ...]
    qualities: tuple[QualityProgress, ...]


class Step(Answer):
    """One attempt of one step."""

    model_config = example(
        step="transcode",
        step_key="transcode:0+10:720p,480p",
        qualities=["720p", "480p"],
        span={"first_segment": 0, "segments": 10},
        generation=0,
        attempt=1,
        worker_id="w-3f2a",
        worker_name="studio",
        queue="vlog-cpu",
        scheduled_at=WHEN,
        started_at=WHEN,
        heartbeat_at=WHEN,
        finished_at=None,
        outcome="running",
        percent=42.0,
        error_code=None,
        error_message=None,
    )
    step: StepName
    step_key: str
    qualities: tuple[str, ...]
    span: Span | None
    generation: int
    attempt: int
    worker_id: str | None
    worker_name: str | None
    queue: str
    scheduled_at: datetime | None
    started_at: datetime | None
    heartbeat_at: datetime | None
    finished_at: datetime | None
    outcome: StepOutcome
    percent: float
    error_code: str | None
    error_message: str | None


class Event(Answer):
    model_config = example(
        event_id=101,
        job_id=34,
        event="quality.completed",
        level="info",
        message="720p is complete.",
        fields={"quality": "720p", "segments": 10},
        actor=None,
        ts=WHEN,
    )
    event_id: int
    job_id: int | None
    event: str
    level: EventLevel
    message: str | None
    fields: dict[str, Any]
    actor: str | None
    ts: datetime
