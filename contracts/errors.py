"""The one tree of failures. Each has a code for programs, a kind that decides what is next, a sentence for people."""

from enum import StrEnum


class FailureKind(StrEnum):
    FATAL = "fatal"  # trying again will not mend it: the step fails at once
    RETRYABLE = "retryable"  # costs an attempt
    LATER = "later"  # nothing is wrong, only busy: wait, no attempt is counted
    DESCEND = "descend"  # the GPU cannot do it: the CPU does


class VlogError(Exception):
    """A failure we can name."""

    code = "INTERNAL_TRANSIENT"
    kind = FailureKind.RETRYABLE
    retry_after_s = 0.0  # for `later`: how long to wait before the step is scheduled anew

    def __init__(self, sentence: str, *, detail: str = "") -> None:
        super().__init__(sentence)
        self.sentence = sentence  # for people: no path, no stack
        self.detail = detail  # for engineers: the tail of stderr


# --- the source -------------------------------------------------------------------------------------------------


class SourceError(VlogError):
    kind = FailureKind.FATAL


class SourceEmpty(SourceError):
    code = "SOURCE_EMPTY"


class SourceUnreadable(SourceError):
    code = "SOURCE_UNREADABLE"


class SourceUnsupported(SourceError):
    """We know what it is and do not take it."""

    code = "SOURCE_UNSUPPORTED"


class SourceForbidden(SourceError):
    """It would make ffmpeg open something other than itself."""

    code = "SOURCE_FORBIDDEN"


class SourceEncrypted(SourceError):
    """Its media are locked with a key that we do not have."""

    code = "SOURCE_ENCRYPTED"


class SourceTooLarge(SourceError):
    """Its pictures have more pixels than `VLOG_MAX_PIXELS`."""

    code = "SOURCE_TOO_LARGE"


class SourceTooFast(SourceError):
    """It shows more pictures a second than `VLOG_MAX_FRAME_RATE`."""

    code = "SOURCE_TOO_FAST"


class SourceTooLong(SourceError):
    """It lasts longer than `VLOG_MAX_DURATION_SECONDS`."""

    code = "SOURCE_TOO_LONG"


class SourceTooManyStreams(SourceError):
    """It has more streams than `VLOG_MAX_STREAMS`."""

    code = "SOURCE_TOO_MANY_STREAMS"


class SourceTooComplex(SourceError):
    """Merely reading it takes more memory or time than `VLOG_PROBE_MEMORY` and `VLOG_PROBE_SECONDS` allow."""

    code = "SOURCE_TOO_COMPLEX"


# --- the encoder ------------------------------------------------------------------------------------------------


class EncoderRejected(VlogError):
    """ffmpeg refuses the command itself: the same command will be refused again."""

    code = "ENCODER_REJECTED"
    kind = FailureKind.FATAL


class EncoderCrashed(VlogError):
    code = "ENCODER_CRASHED"


class EncoderKilled(EncoderCrashed):
    """Somebody ended it, most often a system short of memory: the file is not to blame."""


class EncoderOutOfMemory(EncoderCrashed):
    """It wanted more than `VLOG_ENCODER_MEMORY`, or than the machine has just now."""

    code = "ENCODER_OUT_OF_MEMORY"


class EncoderStalled(VlogError):
    code = "ENCODER_STALLED"


class OutputIncomplete(VlogError):
    """ffmpeg said yes, the file says no."""

    code = "OUTPUT_INCOMPLETE"


class NoPicture(VlogError):
    """Every rung is lost: there is nothing to publish."""

    code = "NO_PICTURE"
    kind = FailureKind.FATAL


class GpuBusy(VlogError):
    code = "GPU_BUSY"
    kind = FailureKind.LATER
    retry_after_s = 30.0


class GpuFailed(VlogError):
    code = "GPU_FAILED"
    kind = FailureKind.DESCEND


class GpuLacks(GpuFailed):
    """The device is well; driver or ffmpeg are made without what this video needs."""


# --- storage and neighbours -------------------------------------------------------------------------------------


class StorageUnavailable(VlogError):
    code = "STORAGE_UNAVAILABLE"


class StorageAway(StorageUnavailable):
    """Nothing can be written or read there, by anybody's step: that is waited for, however long it takes."""

    code = "STORAGE_AWAY"
    kind = FailureKind.LATER
    retry_after_s = 15.0


class StorageUploadFailed(VlogError):
    code = "STORAGE_UPLOAD_FAILED"


class ObjectMissing(VlogError):
    """The bytes are gone; waiting does not bring them back."""

    code = "OBJECT_MISSING"
    kind = FailureKind.FATAL


class ObjectBusy(VlogError):
    """Somebody else is writing just this object."""

    code = "OBJECT_BUSY"


class ScratchFull(VlogError):
    code = "SCRATCH_FULL"
    kind = FailureKind.LATER
    retry_after_s = 30.0


class WorkerFull(VlogError):
    """What the worker runs already leaves no memory for this step; another worker may have it."""

    code = "WORKER_FULL"
    kind = FailureKind.LATER
    retry_after_s = 5.0


class DownloadTimeout(VlogError):
    code = "DOWNLOAD_TIMEOUT"


class UpstreamFailure(VlogError):
    code = "UPSTREAM_FAILURE"


class Drained(VlogError):
    """The worker is being stopped on purpose; what is stored stays, the rest is somebody else's at once."""

    code = "DRAINED"
    kind = FailureKind.LATER


class WorkerBroken(VlogError):
    """It is not the video: this worker fails at a video of its own. It sets itself aside, and another one goes on."""

    code = "WORKER_BROKEN"
    kind = FailureKind.LATER
    retry_after_s = 1.0


class BuildMissing(VlogError):
    """This worker has not got the ffmpeg that the work was begun with; another may, or it is planned anew."""

    code = "BUILD_MISSING"
    kind = FailureKind.LATER
    retry_after_s = 10.0


class InternalTransient(VlogError):
    code = "INTERNAL_TRANSIENT"


# Codes that only a workflow or the mirror gives; no exception carries them.
RETRIES_EXHAUSTED = "RETRIES_EXHAUSTED"
CANCELLED = "CANCELLED"
TERMINATED = "TERMINATED"  # by hand, in Temporal: the workflow could not write its end
WORKFLOW_TIMED_OUT = "WORKFLOW_TIMED_OUT"
WORKFLOW_FAILED = "WORKFLOW_FAILED"
GPU_NOT_TAKEN = "GPU_NOT_TAKEN"  # no GPU worker began a step in time
JOB_ENDED = "JOB_ENDED"  # a command that came too late
MESSAGE_TOO_LARGE = "MESSAGE_TOO_LARGE"  # more to say of a video than Temporal takes in one message

SENTENCE_LIMIT = 500  # what `last_error` and `error_message` hold
