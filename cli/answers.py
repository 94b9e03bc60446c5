"""What the API answers, as far as the command reads it. New fields are ignored, so an older `vlog` still works."""

from datetime import datetime

from contracts.message import Message

ENDED = frozenset({"ready", "failed"})
JOB_ENDED = frozenset({None, "completed", "failed", "cancelled"})  # None: an older API does not say


class Created(Message):
    video_id: int
    slug: str
    job_id: int
    status: str


class Missing(Message):
    name: str
    sentence: str = ""


class Track(Message):
    """A sound or subtitles."""

    name: str
    language: str = "und"
    default: bool = False
    forced: bool = False

    def __str__(self) -> str:
        marks = [self.language, *(["default"] if self.default else []), *(["forced"] if self.forced else [])]
        return f"{self.name} ({', '.join(marks)})"


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
    missing: tuple[Missing, ...] = ()
    audio: tuple[Track, ...] = ()
    subtitles: tuple[Track, ...] = ()


class QualityProgress(Message):
    quality: str
    status: str = "pending"
    percent: float = 0.0
    segments_total: int | None = None
    segments_completed: int | None = None


class Progress(Message):
    status: str
    state: str | None = None
    step: str | None = None
    percent: float = 0.0
    qualities: tuple[QualityProgress, ...] = ()
    attempt: int | None = None
    max_attempts: int | None = None
    eta_seconds: float | None = None
    job_id: int | None = None
    last_error: str | None = None

    @property
    def ended(self) -> bool:
        """Tell whether nothing more will happen: a ready video may be in the middle of a retranscode."""
        return self.status in ENDED and self.state in JOB_ENDED
