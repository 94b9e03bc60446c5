"""The JSON of the API: what each answer holds, with an example of each. Grown additively, never renamed."""

from datetime import datetime
from typing import Any, Generic, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from api.schemas_tracks import SOUND, SUBTITLES, Sound, Subtitles
from contracts.layout import MASTER, MPD, THUMBNAIL, video_prefix
from contracts.states import Codec, JobState, QualityStatus, StepName, Tier, VideoStatus
from mirror.views import VideoView

Item = TypeVar("Item")
WHEN = "2026-11-16T09:30:00Z"


class Answer(BaseModel):
    model_config = ConfigDict(frozen=True, from_attributes=True)


def example(**fields: Any) -> ConfigDict:
    return ConfigDict(frozen=True, from_attributes=True, json_schema_extra={"examples": [fields]})


class ErrorBody(Answer):
    """Every error, whatever its status."""

    model_config = example(error="VIDEO_NOT_FOUND", detail="There is no video 12.")
    error: str = Field(description="A code for programs, in upper case")
    detail: str = Field(description="A sentence for people")


class Created(Answer):
    model_config = example(video_id=12, slug="my-holiday", job_id=34, status="pending")
    video_id: int
    slug: str
    job_id: int
    status: VideoStatus


RENDITION: dict[str, Any] = {
    "quality": "720p",
    "width": 1280,
    "height": 720,
    "bitrate": 2500,
    "codec": "h264",
    "codecs": "avc1.64001f",
    "size_bytes": 8123456,
}


class Quality(Answer):
    model_config = example(**RENDITION)
    quality: str
    width: int
    height: int
    bitrate: int = Field(description="kbit/s, the rung's cap")
    codec: Codec
    codecs: str
    size_bytes: int


MISSING: dict[str, Any] = {"name": "1080p", "code": "ENCODER_CRASHED", "sentence": "ffmpeg crashed."}


class Missing(Answer):
    model_config = example(**MISSING)
    name: str = Field(description="A quality, or a sound track like `audio_1`")
    code: str
    sentence: str


class Video(Answer):
    model_config = example(
        video_id=12,
        slug="my-holiday",
        title="My holiday",
        description="",
        status="ready",
        error_code=None,
        error_message=None,
        duration=20.0,
        source_width=1920,
        source_height=1080,
        source_filename="holiday.mp4",
        source_size_bytes=10485760,
        owner="ana",
        tier="creator",
        created_at=WHEN,
        updated_at=WHEN,
        playable_at=WHEN,
        published_at=WHEN,
        deleted_at=None,
        job_id=34,
        qualities=[RENDITION],
        missing=[MISSING],
        audio=[SOUND],
        subtitles=[SUBTITLES],
        stream_url="/videos/my-holiday/master.m3u8",
        dash_url="/videos/my-holiday/manifest.mpd",
        thumbnail_url="/videos/my-holiday/thumbnail.jpg",
    )
    video_id: int
    slug: str
    title: str
    description: str
    status: VideoStatus
    error_code: str | None
    error_message: str | None
    duration: float = Field(description="Seconds; 0 until the source was read")
    source_width: int
    source_height: int
    source_filename: str
    source_size_bytes: int
    owner: str
    tier: Tier
    created_at: datetime
    updated_at: datetime
    playable_at: datetime | None
    published_at: datetime | None = Field(description="Everybody may watch it since; null: nobody who is not signed in")
    deleted_at: datetime | None = None
    job_id: int | None = Field(description="The newest job")
    qualities: tuple[Quality, ...]
    missing: tuple[Missing, ...] = Field(default=(), description="What it does without; a retry makes just that")
    audio: tuple[Sound, ...] = Field(default=(), description="The sounds to choose from; empty for a silent video")
    subtitles: tuple[Subtitles, ...] = Field(default=(), description="The source's text tracks, as WebVTT")
    stream_url: str | None = Field(
        default=None, description="HLS, relative to this host; given from `playable_at` on, while it still grows"
    )
    dash_url: str | None = Field(default=None, description="DASH, relative to this host; null until it is ready")
    thumbnail_url: str | None = Field(
        default=None, description="A picture, from `playable_at` on; null when none could be made"
    )

    @classmethod
    def of(cls, view: VideoView, *, thumbnail: bool) -> Self:
        ready = view.status is VideoStatus.READY
        plays = ready or (view.playable_at is not None and view.status is not VideoStatus.FAILED)
        folder = "/" + video_prefix(view.slug)
        return cls.model_validate(view).model_copy(
            update={
                "stream_url": folder + MASTER if plays else None,
                "dash_url": folder + MPD if ready else None,
                "thumbnail_url": folder + THUMBNAIL if plays and thumbnail else None,
            }
        )


class Listing(Answer, Generic[Item]):
    """One page, newest first. The cursor of the next page stays right while new rows arrive."""

    items: tuple[Item, ...]
    next_cursor: str | None = Field(default=None, description="Pass as `cursor`; null on the last page")


QUALITY: dict[str, Any] = {
    "quality": "720p",
    "status": "in_progress",
    "percent": 40,
    "segments_total": 10,
    "segments_completed": 4,
}


class QualityProgress(Answer):
    model_config = example(**QUALITY)
    quality: str
    status: QualityStatus
    percent: float
    segments_total: int | None
    segments_completed: int
    started_at: datetime | None = None
    completed_at: datetime | None = None
    error_message: str | None = None


class Progress(Answer):
    model_config = example(
        video_id=12,
        job_id=34,
        status="processing",
        state="claimed",
        step="transcode",
        percent=42,
        qualities=[QUALITY],
        attempt=1,
        max_attempts=3,
        last_error=None,
        error_code=None,
        error_message=None,
        eta_seconds=31.5,
        playable_at=None,
    )
    video_id: int
    job_id: int | None
    status: VideoStatus
    state: JobState | None
    step: StepName | None
    percent: float
    qualities: tuple[QualityProgress, ...]
    attempt: int
    max_attempts: int
    last_error: str | None
    error_code: str | None
    error_message: str | None
    eta_seconds: float | None
    playable_at: datetime | None


class Alive(Answer):
    model_config = example(status="ok")
    status: str


class PartHealth(Answer):
    model_config = example(ok=True, detail=None)
    ok: bool
    detail: str | None = None


class Health(Answer):
    model_config = example(
        status="healthy",
        postgres={"ok": True, "detail": None},
        temporal={"ok": True, "detail": None},
        storage={"ok": True, "detail": None},
        active_workers=1,
        pending_jobs=0,
        processing_jobs=1,
        queue_depth=2,
    )
    status: str
    postgres: PartHealth
    temporal: PartHealth
    storage: PartHealth
    active_workers: int | None = Field(description="Null while Postgres is away")
    pending_jobs: int | None
    processing_jobs: int | None
    queue_depth: int | None = Field(description="Steps waiting for an encoder; null while Temporal is away")
