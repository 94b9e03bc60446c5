"""What the API answers, as far as the command reads it. New fields are ignored, so an older `vlog` still works."""

from datetime import datetime

from contracts.message import Message

ENDED = frozenset({"ready", "failed"})


class Created(Message):
    video_id: int
    slug: str
    job_id: int
    status: str


class Video(Message):
    video_id: int
    slug: str
    title: str = ""
    status: str
    error_code: str | None = None
    error_message: str | None = None
    duration: float | None = None
    created_at: datetime | None = None
    job_id: int | None = None
    owner: str | None = None
    tier: str | None = None
    stream_url: str | None = None
    dash_url: str | None = None


class QualityProgress(Message):
    quality: str
    status: str = "pending"
    percent: float = 0.0
    segments_total: int | None = None
    segments_completed: int | None = None


class Progress(Message):
    status: str
    step: str | None = None
    percent: float = 0.0
    qualities: tuple[QualityProgress, ...] = ()
    attempt: int | None = None
    max_attempts: int | None = None
    eta_seconds: float | None = None
    job_id: int | None = None

    @property
    def ended(self) -> bool:
        return self.status in ENDED
