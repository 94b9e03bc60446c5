"""Enumerations of documented columns that no other part of the project speaks."""

from enum import StrEnum


class Command(StrEnum):
    """What Temporal may still have to be told of a job; in `transcoding_jobs.untold`."""

    CANCEL = "cancel"
    PAUSE = "pause"  # or resume: whichever the row wishes by now
    PRIORITY = "priority"


class ThumbnailSource(StrEnum):
    AUTO = "auto"
    SELECTED = "selected"
    CUSTOM = "custom"


class StreamingFormat(StrEnum):
    HLS_TS = "hls_ts"  # accepted for imported rows; we only make CMAF
    CMAF = "cmaf"


class SegmentFormat(StrEnum):
    TS = "ts"
    FMP4 = "fmp4"


class SpriteStatus(StrEnum):
    PENDING = "pending"
    GENERATING = "generating"
    READY = "ready"
    FAILED = "failed"


class TranscriptionStatus(StrEnum):
    PENDING = "pending"
    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"


class DeliveryStatus(StrEnum):
    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"  # will be tried again
    FAILED_PERMANENT = "failed_permanent"
    SUPPRESSED = "suppressed"  # the same was told a moment ago; the next one says how many there were
