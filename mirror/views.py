"""What the mirror hands out: frozen views. ORM rows never leave this folder."""

from datetime import datetime
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from contracts.plan import Span
from contracts.renditions import AudioRendition, SubtitleRendition
from contracts.states import (
    Codec,
    EventLevel,
    JobKind,
    JobState,
    QualityStatus,
    StepName,
    StepOutcome,
    Tier,
    VideoStatus,
)
from contracts.steps import MissingRendition

Item = TypeVar("Item")


class View(BaseModel):
    model_config = ConfigDict(frozen=True)


class Page(View, Generic[Item]):
    items: tuple[Item, ...]
    next_cursor: str | None = None  # None: this was the last page


class VideoQualityView(View):
    quality: str
    width: int
    height: int
    bitrate: int  # kbps
    codec: Codec
    codecs: str
    size_bytes: int
    prefix: str


class VideoView(View):
    video_id: int
    slug: str
    title: str
    description: str
    status: VideoStatus
    error_code: str | None
    error_message: str | None
    duration: float  # seconds
    source_width: int
    source_height: int
    source_key: str
    source_filename: str
    source_size_bytes: int
    owner: str
    tier: Tier
    created_at: datetime
    updated_at: datetime
    playable_at: datetime | None
    published_at: datetime | None
    deleted_at: datetime | None
    missing: tuple[MissingRendition, ...] = ()  # what a ready video does without, and why
    job_id: int | None  # the newest
    qualities: tuple[VideoQualityView, ...] = ()
    audio: tuple[AudioRendition, ...] = ()
    subtitles: tuple[SubtitleRendition, ...] = ()


class ReportView(View):
    """What the probe found and what the newest plan decided, as they were stored."""

    facts: dict[str, Any] | None
    plan: dict[str, Any] | None


class QualityProgressView(View):
    quality: str
    status: QualityStatus
    percent: int
    segments_total: int | None
    segments_completed: int
    started_at: datetime | None
    completed_at: datetime | None
    error_message: str | None


class JobView(View):
    job_id: int
    video_id: int
    state: JobState
    current_step: StepName | None
    progress_percent: int
    progress_current: int  # segments, over all qualities
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
    last_checkpoint: datetime | None
    completed_at: datetime | None
    cancelled_at: datetime | None
    paused_at: datetime | None
    processed_by_worker_id: str | None
    processed_by_worker_name: str | None
    workflow_id: str | None
    workflow_started_at: datetime | None
    output: str
    kind: JobKind
    continues_job_id: int | None  # the job whose plan it keeps to
    cancel_requested_at: datetime | None
    wanted: tuple[str, ...]  # the qualities asked for; empty: the whole ladder
    owner: str
    tier: Tier
    notes: tuple[str, ...]  # the plan's decisions worth telling a person
    qualities: tuple[QualityProgressView, ...] = ()


class StepView(View):
    step: StepName
    step_key: str
    qualities: tuple[str, ...]
    span: Span | None
    generation: int
    attempt: int
    tries: int
    worker_id: str | None
    worker_name: str | None
    queue: str
    scheduled_at: datetime | None
    started_at: datetime
    heartbeat_at: datetime
    finished_at: datetime | None
    outcome: StepOutcome
    percent: float
    error_code: str | None
    error_message: str | None
    error_detail: str | None


class EventView(View):
    event_id: int
    job_id: int | None
    event: str
    level: EventLevel
    message: str | None
    fields: dict[str, Any]
    actor: str | None
    step_key: str | None
    generation: int | None
    attempt: int | None
    ts: datetime


class ProgressView(View):
    video_id: int
    job_id: int | None
    status: VideoStatus
    state: JobState | None
    step: StepName | None
    percent: int
    qualities: tuple[QualityProgressView, ...]
    attempt: int
    max_attempts: int
    last_error: str | None
    error_code: str | None
    error_message: str | None
    eta_seconds: float | None
    playable_at: datetime | None


class HealthCounts(View):
    active_workers: int
    pending_jobs: int  # nobody holds them: unclaimed, retrying or expired
    processing_jobs: int
    videos: dict[VideoStatus, int]
