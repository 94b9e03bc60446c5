"""Tables around the jobs: workers and their keys, what seals their claims, transcriptions, uploads under way."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, String, Text, func, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from contracts.states import Tier, WorkerStatus, WorkerType
from mirror.base import Base, word
from mirror.words import TranscriptionStatus


class Worker(Base):
    __tablename__ = "workers"
    __table_args__ = (
        CheckConstraint("octet_length(capabilities::text) <= 10240", name="capabilities_size"),
        CheckConstraint("octet_length(metadata::text) <= 10240", name="metadata_size"),
        Index("ix_workers_status", "status"),
        Index("ix_workers_last_heartbeat", "last_heartbeat"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    worker_id: Mapped[str] = mapped_column(String(100), unique=True)
    worker_name: Mapped[str | None] = mapped_column(String(100))
    worker_type: Mapped[WorkerType] = mapped_column(word(WorkerType, "worker_type"), server_default=WorkerType.REMOTE)
    registered_at: Mapped[datetime] = mapped_column(server_default=func.now())
    last_heartbeat: Mapped[datetime | None]
    status: Mapped[WorkerStatus] = mapped_column(word(WorkerStatus, "status"), server_default=WorkerStatus.ACTIVE)
    current_job_id: Mapped[int | None] = mapped_column(ForeignKey("transcoding_jobs.id", ondelete="SET NULL"))
    capabilities: Mapped[dict[str, Any] | None]
    # `metadata` belongs to SQLAlchemy on a model, so the attribute has another name than its column.
    about: Mapped[dict[str, Any] | None] = mapped_column("metadata", JSONB)
    # ours
    quarantined_at: Mapped[datetime | None]  # while it has set any pool aside
    pools_aside: Mapped[list[str]] = mapped_column(server_default=text("'[]'::jsonb"))  # those it is unfit for
    version: Mapped[str | None] = mapped_column(String(100))
    revoked_at: Mapped[datetime | None]  # shut out by a person; all its keys, if it has any, are revoked too
    asked_at: Mapped[datetime | None]  # for a step, or told of one it has: who only beats is given none
    # Counted by the worker itself, written with its next sign of life; see /metrics.
    heartbeats: Mapped[int] = mapped_column(server_default="0")
    heartbeat_failures: Mapped[int] = mapped_column(server_default="0")
    acquire_conflicts: Mapped[int] = mapped_column(server_default="0")


class WorkerApiKey(Base):
    __tablename__ = "worker_api_keys"
    __table_args__ = (
        Index("ix_worker_api_keys_key_prefix", "key_prefix"),
        Index("ix_worker_api_keys_worker_id", "worker_id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    worker_id: Mapped[int] = mapped_column(ForeignKey("workers.id", ondelete="CASCADE"))
    key_hash: Mapped[str] = mapped_column(String(255))
    hash_version: Mapped[int] = mapped_column(server_default="1")  # 1: SHA-256 of a 256-bit key
    key_prefix: Mapped[str] = mapped_column(String(8))
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]


class SealingKey(Base):
    """One row, or none: see mirror/sealing.py."""

    __tablename__ = "sealing_keys"
    __table_args__ = (CheckConstraint("id = 1", name="one"),)

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    key: Mapped[str] = mapped_column(Text)
    made_at: Mapped[datetime] = mapped_column(server_default=func.now())


class Transcription(Base):
    __tablename__ = "transcriptions"

    id: Mapped[int] = mapped_column(primary_key=True)
    video_id: Mapped[int] = mapped_column(ForeignKey("videos.id", ondelete="CASCADE"), unique=True)
    status: Mapped[TranscriptionStatus] = mapped_column(
        word(TranscriptionStatus, "status"), server_default=TranscriptionStatus.PENDING
    )
    language: Mapped[str] = mapped_column(String(10), server_default="en")
    started_at: Mapped[datetime | None]
    completed_at: Mapped[datetime | None]
    duration_seconds: Mapped[float | None]
    transcript_text: Mapped[str | None] = mapped_column(Text)
    vtt_path: Mapped[str | None] = mapped_column(String(255))
    word_count: Mapped[int | None]
    error_message: Mapped[str | None] = mapped_column(Text)


class Upload(Base):
    """An upload under way (tus): which bytes are here, until when they are kept, which video they became."""

    __tablename__ = "uploads"
    __table_args__ = (
        CheckConstraint("offset_bytes >= 0 AND (size_bytes IS NULL OR offset_bytes <= size_bytes)", name="offset"),
        Index("ix_uploads_expires_at", "expires_at"),
    )

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    key: Mapped[str] = mapped_column(Text)
    filename: Mapped[str] = mapped_column(Text, server_default="")
    title: Mapped[str] = mapped_column(String(255), server_default="")
    owner: Mapped[str] = mapped_column(String(255), server_default="")
    tier: Mapped[Tier] = mapped_column(word(Tier, "tier"), server_default=Tier.FREE)
    details: Mapped[dict[str, Any]] = mapped_column(JSONB, server_default=text("'{}'::jsonb"))
    size_bytes: Mapped[int | None]
    offset_bytes: Mapped[int] = mapped_column(server_default="0")
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    updated_at: Mapped[datetime] = mapped_column(server_default=func.now())
    expires_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    video_id: Mapped[int | None] = mapped_column(ForeignKey("videos.id", ondelete="SET NULL"))
