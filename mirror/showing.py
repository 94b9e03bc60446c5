"""From rows to views."""

from collections.abc import Sequence
from datetime import datetime

from contracts.media import FrameRate
from contracts.plan import Span
from contracts.renditions import AudioRendition, SubtitleRendition, VideoRendition
from contracts.states import JobState, QualityStatus
from mirror.states import job_state
from mirror.tables import (
    AudioRenditionRow,
    Job,
    JobEvent,
    JobStep,
    QualityProgressRow,
    SubtitleRenditionRow,
    Video,
    VideoQuality,
)
from mirror.views import (
    EventView,
    JobView,
    ProgressView,
    QualityProgressView,
    StepView,
    VideoQualityView,
    VideoView,
)

Tracks = tuple[list[AudioRendition], list[SubtitleRendition]]

ETA_FROM_PERCENT = 3  # before, the guess would be about the probe


def show_video(row: Video, job_id: int | None, qualities: Sequence[VideoQuality], tracks: Tracks) -> VideoView:
    other = ("video_id", "job_id", "qualities", "audio", "subtitles")
    same = [name for name in VideoView.model_fields if name not in other]
    shown = tuple(
        VideoQualityView(**{name: getattr(quality, name) for name in VideoQualityView.model_fields})
        for quality in qualities
    )
    plain = {name: getattr(row, name) for name in same}
    audio, subtitles = tracks
    return VideoView(
        video_id=row.id, job_id=job_id, qualities=shown, audio=tuple(audio), subtitles=tuple(subtitles), **plain
    )


def show_quality(row: QualityProgressRow) -> QualityProgressView:
    return QualityProgressView(
        quality=row.quality,
        status=row.status,
        percent=row.progress_percent,
        segments_total=row.segments_total,
        segments_completed=row.segments_completed,
        started_at=row.started_at,
        completed_at=row.completed_at,
        error_message=row.error_message,
    )


def show_job(row: Job, qualities: Sequence[QualityProgressRow], now: datetime) -> JobView:
    made = [quality for quality in qualities if quality.status is not QualityStatus.SKIPPED]
    derived = ("job_id", "state", "progress_current", "progress_total", "wanted", "notes", "qualities")
    plain = {name: getattr(row, name) for name in JobView.model_fields if name not in derived}
    return JobView(
        job_id=row.id,
        state=job_state(row, now),
        progress_current=sum(quality.segments_completed for quality in made),
        progress_total=sum(quality.segments_total or 0 for quality in made),
        wanted=tuple(row.qualities),
        notes=tuple((row.plan or {}).get("notes", ())),
        qualities=tuple(show_quality(quality) for quality in qualities),
        **plain,
    )


def show_step(row: JobStep) -> StepView:
    span = None
    if row.first_segment is not None and row.segments is not None:
        span = Span(first_segment=row.first_segment, segments=row.segments)
    plain = {name: getattr(row, name) for name in StepView.model_fields if name not in ("span", "qualities")}
    return StepView(span=span, qualities=tuple(row.qualities), **plain)


def show_event(row: JobEvent) -> EventView:
    plain = {name: getattr(row, name) for name in EventView.model_fields if name != "event_id"}
    return EventView(event_id=row.id, **plain)


def show_progress(video: Video, job: JobView | None, now: datetime) -> ProgressView:
    return ProgressView(
        video_id=video.id,
        job_id=job.job_id if job else None,
        status=video.status,
        state=job.state if job else None,
        step=job.current_step if job else None,
        percent=job.progress_percent if job else 0,
        qualities=job.qualities if job else (),
        attempt=job.attempt_number if job else 1,
        max_attempts=job.max_attempts if job else 1,
        last_error=job.last_error if job else None,
        error_code=video.error_code or (job.error_code if job else None),
        error_message=video.error_message,
        eta_seconds=_eta_s(job, now) if job else None,
        playable_at=video.playable_at,
    )


def _eta_s(job: JobView, now: datetime) -> float | None:
    """Guess what is left from what it took so far; nothing honest can be said of a job nobody works on."""
    if job.state is not JobState.CLAIMED or job.started_at is None or job.progress_percent < ETA_FROM_PERCENT:
        return None
    spent_s = max(0.0, (now - job.started_at).total_seconds())
    return round(spent_s * (100 - job.progress_percent) / job.progress_percent, 1)


def show_video_rendition(row: VideoQuality) -> VideoRendition:
    other = ("bitrate_kbps", "frame_rate")
    plain = {name: getattr(row, name) for name in VideoRendition.model_fields if name not in other}
    rate = FrameRate(num=row.frame_rate_num, den=row.frame_rate_den)
    return VideoRendition(bitrate_kbps=row.bitrate, frame_rate=rate, **plain)


def show_audio_rendition(row: AudioRenditionRow) -> AudioRendition:
    other = ("default", "segment_durations")
    plain = {name: getattr(row, name) for name in AudioRendition.model_fields if name not in other}
    runs = tuple((duration, count) for duration, count in row.segment_durations)
    return AudioRendition(default=row.is_default, segment_durations=runs, **plain)


def show_subtitle_rendition(row: SubtitleRenditionRow) -> SubtitleRendition:
    plain = {name: getattr(row, name) for name in SubtitleRendition.model_fields if name != "default"}
    return SubtitleRendition(default=row.is_default, **plain)
