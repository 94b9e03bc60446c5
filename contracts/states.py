"""Every enumerated column of the mirror. The values are what dashboards query: never rename one."""

from enum import StrEnum


class VideoStatus(StrEnum):
    PENDING = "pending"  # uploaded; no step of it is held
    PROCESSING = "processing"  # a worker holds a step of it
    READY = "ready"  # it streams; stays so throughout a retranscode
    FAILED = "failed"  # error_code and error_message say why; the source is kept


class JobState(StrEnum):
    """Derived, never stored: see mirror.states.job_state."""

    CANCELLED = "cancelled"
    COMPLETED = "completed"
    FAILED = "failed"
    PAUSED = "paused"
    CLAIMED = "claimed"
    EXPIRED = "expired"
    RETRYING = "retrying"
    UNCLAIMED = "unclaimed"


class QualityStatus(StrEnum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    UPLOADING = "uploading"  # accepted for dashboards of the documented system; we store segments as they finish
    UPLOADED = "uploaded"  # likewise
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"  # larger than the source


class WorkerStatus(StrEnum):
    ACTIVE = "active"  # registered, not yet heard from
    IDLE = "idle"  # has a free slot
    BUSY = "busy"  # every slot is taken
    OFFLINE = "offline"  # silent for longer than the threshold
    DISABLED = "disabled"  # by a person; nothing it sends changes that


class WorkerStanding(StrEnum):
    """What the mirror answers a worker that registers or beats; not stored."""

    WELCOME = "welcome"
    DISABLED = "disabled"  # no work until it is enabled; it may go on beating
    REVOKED = "revoked"  # no work: shut out, until it gets a new key or somebody lets it in
    UNKNOWN = "unknown"  # there is no such worker


class WorkerType(StrEnum):
    LOCAL = "local"
    REMOTE = "remote"


class StepName(StrEnum):
    """The phases of one video, in the order people see them; `current_step` shows one of these."""

    PROBE = "probe"
    REMUX = "remux"  # only for containers that seek badly: the same packets in one that seeks well
    PLAN = "plan"
    THUMBNAIL = "thumbnail"
    AUDIO = "audio"
    SUBTITLES = "subtitles"  # a text track of the source becomes WebVTT
    TRANSCODE = "transcode"
    VERIFY = "verify"
    MASTER_PLAYLIST = "master_playlist"
    PUBLISH = "publish"
    FINALIZE = "finalize"
    STORYBOARD = "storyboard"  # after the job's end: never its `current_step`


# Steps that are tried until they succeed, since by then all is made: their tries are none of the job's attempts.
UNTIL_DONE = frozenset({StepName.PUBLISH, StepName.FINALIZE})
# Steps that run when their job has ended: lines of its history that change nothing on it.
AFTER_THE_END = frozenset({StepName.STORYBOARD})


class StepOutcome(StrEnum):
    RUNNING = "running"
    COMPLETED = "completed"
    PARTIAL = "partial"  # returned what it had: drained, paused or told to wait
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"  # its worker vanished; a newer attempt or housekeeping said so


class EventLevel(StrEnum):
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class JobKind(StrEnum):
    """Why a job was made."""

    UPLOAD = "upload"  # a video's first
    RETRY = "retry"  # makes what the job before it left missing, in the same output
    RETRANSCODE = "retranscode"  # makes it again in an output of its own; the old stream is served until then


class Codec(StrEnum):
    H264 = "h264"
    HEVC = "hevc"
    AV1 = "av1"


class Tier(StrEnum):
    """Who waits for whom; the number is Temporal's priority key, lower first."""

    VIRAL = "viral"
    CREATOR = "creator"
    HOBBY = "hobby"
    TRIAL = "trial"
    FREE = "free"
    BULK = "bulk"  # a retranscode of many videos

    @property
    def priority(self) -> int:
        return {"viral": 1, "creator": 2, "hobby": 3, "trial": 4, "free": 4, "bulk": 5}[self.value]
