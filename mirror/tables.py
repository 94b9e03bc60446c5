"""Videos, jobs and their progress. Documented columns keep their documented names; ours stand below them."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    CheckConstraint,
    ColumnElement,
    ForeignKey,
    Index,
    String,
    Text,
    UniqueConstraint,
    and_,
    false,
    func,
    not_,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from contracts.plan import QUALITY_PATTERN
from contracts.states import Codec, JobKind, QualityStatus, StepName, Tier, VideoStatus
from mirror.base import Base, word
from mirror.tables_around import (
    SealingKey,
    Transcription,
    Upload,
    Worker,
    WorkerApiKey,
)
from mirror.tables_hooks import Webhook, WebhookDelivery
from mirror.tables_house import EventCountRow, Mark
from mirror.tables_steps import JobEvent, JobStep
from mirror.words import SegmentFormat, SpriteStatus, StreamingFormat, ThumbnailSource

__all__ = [
    "AudioRenditionRow",
    "Base",
    "EventCountRow",
    "Job",
    "JobEvent",
    "JobStep",
    "Mark",
    "QualityProgressRow",
    "SealingKey",
    "SubtitleRenditionRow",
    "Transcription",
    "Upload",
    "Video",
    "VideoQuality",
    "Webhook",
    "WebhookDelivery",
    "Worker",
    "WorkerApiKey",
]

# One job at a time per video. The same words as `job_state`: neither cancelled, nor completed, nor failed.
UNFINISHED = (
    "cancelled_at IS NULL AND completed_at IS NULL AND NOT (last_error IS NOT NULL AND attempt_number >= max_attempts)"
)
PERCENT = "progress_percent BETWEEN 0 AND 100"
QUALITY_NAME = f"quality ~ '{QUALITY_PATTERN}'"


class Video(Base):
    __tablename__ = "videos"
    __table_args__ = (
        Index("ix_videos_created_at", "created_at"),
        Index("ix_videos_deleted_at", "deleted_at"),
        # A page of a list, newest first, whatever it is narrowed to.
        Index("ix_videos_status_id", "status", "id"),
        Index("ix_videos_owner_id", "owner", "id"),
        Index("ix_videos_tier_id", "tier", "id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str] = mapped_column(String(255))
    slug: Mapped[str] = mapped_column(String(255), unique=True)  # never reused, not even after deletion
    description: Mapped[str] = mapped_column(Text, server_default="")
    category_id: Mapped[int | None]  # the documented system's catalogue is not ours; its column is kept
    duration: Mapped[float] = mapped_column(server_default="0")  # seconds
    source_width: Mapped[int] = mapped_column(server_default="0")
    source_height: Mapped[int] = mapped_column(server_default="0")
    status: Mapped[VideoStatus] = mapped_column(word(VideoStatus, "status"), server_default=VideoStatus.PENDING)
    error_message: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    published_at: Mapped[datetime | None]
    deleted_at: Mapped[datetime | None]
    thumbnail_source: Mapped[ThumbnailSource] = mapped_column(
        word(ThumbnailSource, "thumbnail_source"), server_default=ThumbnailSource.AUTO
    )
    thumbnail_timestamp: Mapped[float | None]
    streaming_format: Mapped[StreamingFormat] = mapped_column(
        word(StreamingFormat, "streaming_format"), server_default=StreamingFormat.CMAF
    )
    primary_codec: Mapped[Codec] = mapped_column(word(Codec, "primary_codec"), server_default=Codec.H264)
    is_featured: Mapped[bool] = mapped_column(server_default=false())
    featured_at: Mapped[datetime | None]
    has_chapters: Mapped[bool] = mapped_column(server_default=false())
    sprite_sheet_status: Mapped[SpriteStatus | None] = mapped_column(word(SpriteStatus, "sprite_sheet_status"))
    sprite_sheet_error: Mapped[str | None] = mapped_column(Text)
    sprite_sheet_count: Mapped[int] = mapped_column(server_default="0")
    sprite_sheet_interval: Mapped[int | None]
    sprite_sheet_tile_size: Mapped[int | None]
    sprite_sheet_frame_width: Mapped[int | None]
    sprite_sheet_frame_height: Mapped[int | None]
    # ours
    owner: Mapped[str] = mapped_column(String(255), server_default="")
    tier: Mapped[Tier] = mapped_column(word(Tier, "tier"), server_default=Tier.FREE)
    source_key: Mapped[str] = mapped_column(Text, server_default="")
    source_filename: Mapped[str] = mapped_column(Text, server_default="")
    source_size_bytes: Mapped[int] = mapped_column(server_default="0")
    source_facts: Mapped[dict[str, Any] | None]  # what the probe saw
    error_code: Mapped[str | None] = mapped_column(String(50))
    playable_at: Mapped[datetime | None]
    updated_at: Mapped[datetime] = mapped_column(server_default=func.now())
    idempotency_key: Mapped[str | None] = mapped_column(String(255), unique=True)
    # What a ready video does without, and why: each a MissingRendition.
    missing: Mapped[list[Any]] = mapped_column(JSONB, server_default=text("'[]'::jsonb"))
    unpublished_at: Mapped[datetime | None]  # by a person: it is not published by itself any more
    purged_at: Mapped[datetime | None]  # deleted for good: only this row is left, and its slug


class Job(Base):
    __tablename__ = "transcoding_jobs"
    __table_args__ = (
        CheckConstraint(PERCENT, name="progress_percent_range"),
        CheckConstraint("attempt_number >= 1 AND max_attempts >= 1", name="attempts"),
        # A claim without an end would be neither claimed nor expired.
        CheckConstraint("(claimed_at IS NULL) = (claim_expires_at IS NULL)", name="claim_whole"),
        Index("ix_transcoding_jobs_video_id", "video_id"),
        Index("ix_transcoding_jobs_claim_expires", "claim_expires_at"),
        Index("uq_transcoding_jobs_unfinished", "video_id", unique=True, postgresql_where=text(UNFINISHED)),
        Index(
            "ix_transcoding_jobs_unstarted",
            "created_at",
            postgresql_where=text("workflow_started_at IS NULL AND completed_at IS NULL AND cancelled_at IS NULL"),
        ),
        Index("ix_transcoding_jobs_command_at", "command_at", postgresql_where=text("command_at IS NOT NULL")),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    video_id: Mapped[int] = mapped_column(ForeignKey("videos.id", ondelete="CASCADE"))
    worker_id: Mapped[str | None] = mapped_column(String(100))
    current_step: Mapped[StepName | None] = mapped_column(word(StepName, "current_step", 50))
    progress_percent: Mapped[int] = mapped_column(server_default="0")
    started_at: Mapped[datetime | None]
    last_checkpoint: Mapped[datetime | None]
    completed_at: Mapped[datetime | None]
    claimed_at: Mapped[datetime | None]
    claim_expires_at: Mapped[datetime | None]
    attempt_number: Mapped[int] = mapped_column(server_default="1")
    max_attempts: Mapped[int] = mapped_column(server_default="3")
    last_error: Mapped[str | None] = mapped_column(Text)
    processed_by_worker_id: Mapped[str | None] = mapped_column(String(100))
    processed_by_worker_name: Mapped[str | None] = mapped_column(String(100))
    retranscode_metadata: Mapped[dict[str, Any] | None]
    # ours
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    output: Mapped[str] = mapped_column(String(20), server_default="r1")
    qualities: Mapped[list[str]] = mapped_column(server_default=text("'[]'::jsonb"))  # empty: the whole ladder
    owner: Mapped[str] = mapped_column(String(255), server_default="")
    tier: Mapped[Tier] = mapped_column(word(Tier, "tier"), server_default=Tier.FREE)
    workflow_id: Mapped[str | None] = mapped_column(String(255))
    workflow_started_at: Mapped[datetime | None]
    cancelled_at: Mapped[datetime | None]
    paused_at: Mapped[datetime | None]
    error_code: Mapped[str | None] = mapped_column(String(50))
    plan: Mapped[dict[str, Any] | None]
    kind: Mapped[JobKind] = mapped_column(word(JobKind, "kind"), server_default=JobKind.UPLOAD)
    continues_job_id: Mapped[int | None] = mapped_column(ForeignKey("transcoding_jobs.id", ondelete="SET NULL"))
    keep: Mapped[list[str]] = mapped_column(server_default=text("'[]'::jsonb"))  # renditions that stay as they are
    # Commands are wishes of the row; these say which of them Temporal has not heard yet: see writes_commands.
    cancel_requested_at: Mapped[datetime | None]
    command_at: Mapped[datetime | None]
    untold: Mapped[list[str]] = mapped_column(server_default=text("'[]'::jsonb"))


def unfinished() -> ColumnElement[bool]:
    """Say `UNFINISHED` of a job's columns, for queries in which another table has the same names."""
    failed = and_(Job.last_error.is_not(None), Job.attempt_number >= Job.max_attempts)
    return and_(Job.cancelled_at.is_(None), Job.completed_at.is_(None), not_(failed))


class QualityProgressRow(Base):
    __tablename__ = "quality_progress"
    __table_args__ = (
        UniqueConstraint("job_id", "quality", name="uq_job_quality"),
        CheckConstraint(PERCENT, name="progress_percent_range"),
        CheckConstraint(QUALITY_NAME, name="quality"),
        Index("ix_quality_progress_job_id", "job_id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    job_id: Mapped[int] = mapped_column(ForeignKey("transcoding_jobs.id", ondelete="CASCADE"))
    quality: Mapped[str] = mapped_column(String(20))
    status: Mapped[QualityStatus] = mapped_column(word(QualityStatus, "status"), server_default=QualityStatus.PENDING)
    segments_total: Mapped[int | None]
    segments_completed: Mapped[int] = mapped_column(server_default="0")
    progress_percent: Mapped[int] = mapped_column(server_default="0")
    started_at: Mapped[datetime | None]
    completed_at: Mapped[datetime | None]
    error_message: Mapped[str | None] = mapped_column(Text)
    # ours: a rung weighs in the job's percent by its pixels
    width: Mapped[int] = mapped_column(server_default="0")
    height: Mapped[int] = mapped_column(server_default="0")


class VideoQuality(Base):
    """A whole, verified rendition; manifests are built from these rows."""

    __tablename__ = "video_qualities"
    __table_args__ = (
        UniqueConstraint("video_id", "quality"),
        CheckConstraint(QUALITY_NAME, name="quality"),
        Index("ix_video_qualities_video_id", "video_id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    video_id: Mapped[int] = mapped_column(ForeignKey("videos.id", ondelete="CASCADE"))
    quality: Mapped[str] = mapped_column(String(20))
    width: Mapped[int]
    height: Mapped[int]
    bitrate: Mapped[int]  # kbps: the rung's cap
    codec: Mapped[Codec] = mapped_column(word(Codec, "codec"), server_default=Codec.H264)
    segment_format: Mapped[SegmentFormat] = mapped_column(
        word(SegmentFormat, "segment_format"), server_default=SegmentFormat.FMP4
    )
    # ours
    job_id: Mapped[int | None] = mapped_column(ForeignKey("transcoding_jobs.id", ondelete="SET NULL"))
    prefix: Mapped[str] = mapped_column(Text)
    codecs: Mapped[str] = mapped_column(String(100))
    frame_rate_num: Mapped[int]
    frame_rate_den: Mapped[int]
    timescale: Mapped[int]
    frame_duration: Mapped[int]
    segment_frames: Mapped[int]
    frames: Mapped[int]
    size_bytes: Mapped[int]
    peak_bandwidth: Mapped[int]
    average_bandwidth: Mapped[int]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class AudioRenditionRow(Base):
    __tablename__ = "audio_renditions"
    __table_args__ = (UniqueConstraint("video_id", "track"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    video_id: Mapped[int] = mapped_column(ForeignKey("videos.id", ondelete="CASCADE"))
    job_id: Mapped[int | None] = mapped_column(ForeignKey("transcoding_jobs.id", ondelete="SET NULL"))
    track: Mapped[int]
    prefix: Mapped[str] = mapped_column(Text)
    codecs: Mapped[str] = mapped_column(String(100))
    language: Mapped[str] = mapped_column(Text)
    name: Mapped[str] = mapped_column(Text)
    is_default: Mapped[bool]
    channels: Mapped[int]
    timescale: Mapped[int]
    segment_durations: Mapped[list[list[int]]]
    size_bytes: Mapped[int]
    peak_bandwidth: Mapped[int]
    average_bandwidth: Mapped[int]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class SubtitleRenditionRow(Base):
    __tablename__ = "subtitle_renditions"
    __table_args__ = (UniqueConstraint("video_id", "track"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    video_id: Mapped[int] = mapped_column(ForeignKey("videos.id", ondelete="CASCADE"))
    job_id: Mapped[int | None] = mapped_column(ForeignKey("transcoding_jobs.id", ondelete="SET NULL"))
    track: Mapped[int]
    prefix: Mapped[str] = mapped_column(Text)
    language: Mapped[str] = mapped_column(Text)
    name: Mapped[str] = mapped_column(Text)
    is_default: Mapped[bool]
    forced: Mapped[bool]
    cues: Mapped[int]
    size_bytes: Mapped[int]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
