"""What ffmpeg's last words mean. One table, read from the top; the samples it was made from are its tests."""

from dataclasses import dataclass

from contracts.errors import (
    Drained,
    EncoderCrashed,
    EncoderKilled,
    EncoderOutOfMemory,
    EncoderRejected,
    GpuBusy,
    GpuFailed,
    ObjectMissing,
    ScratchFull,
    SourceError,
    SourceUnreadable,
    StorageUnavailable,
    VlogError,
)


@dataclass(frozen=True)
class Finding:
    error: type[VlogError]
    sentence: str
    words: tuple[str, ...]


SAID_BY_ENCODER = "exit code"  # so begins the detail of what an ffmpeg said

FULL = Finding(
    ScratchFull, "The disk for work in progress is full.", ("No space left on device", "Disk quota exceeded")
)

NO_DEVICE = Finding(
    GpuFailed,
    "The GPU cannot be reached.",
    (
        "Cannot load libcuda",
        "Cannot load libnvidia-encode",
        "Cannot load nvcuda",
        "CUDA_ERROR_NO_DEVICE",
        "CUDA_ERROR_UNKNOWN",
        "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
        "Driver does not support the required nvenc API version",
        "No VA display found",
        "Failed to initialise VAAPI connection",
        "Error creating a QSV device",
        "Device creation failed",
    ),
)

TABLE = (
    FULL,
    # Somebody else has the device's sessions or its memory; nothing is wrong with it.
    Finding(
        GpuBusy,
        "Every encoder session of the GPU is taken.",
        (
            "OpenEncodeSessionEx failed: out of memory (10)",
            "OpenEncodeSessionEx failed: incompatible client key (21)",  # the same limit, as consumer cards say it
            "CUDA_ERROR_OUT_OF_MEMORY",
        ),
    ),
    # No driver, no device or no right to it: whatever is asked of it, this build gets no answer.
    NO_DEVICE,
    Finding(
        GpuFailed,
        "The GPU cannot encode this.",
        (
            "OpenEncodeSessionEx failed",
            "No capable devices found",
            "No NVENC capable devices found",
            "Provided device doesn't support required NVENC features",
            "InitializeEncoder failed",
            "EncodePicture failed",
            "Failed locking bitstream buffer",
            "CUDA_ERROR_",
            "No usable encoding entrypoint found",
            "No usable encoding profile found",
            "Driver does not support any RC mode",
            "Failed to end picture encode issue",
            "Failed to map output buffers",
            "Failed to sync surface",
            "Error initializing the encoder",
            "MFX session",
            "device failed (-17)",
            "cannot create compression session",
            "No device available for decoder",
            "Failed setup for format",
            "No decoder surfaces left",
        ),
    ),
    # Before the rejections: an encoder without memory says that its parameters may be wrong.
    Finding(
        EncoderOutOfMemory,
        "The encoder ran out of memory.",
        (
            "Cannot allocate memory",
            "Could not allocate memory",
            "Decoding error: Out of memory",
            "malloc of size",
            "std::bad_alloc",
            "Resource temporarily unavailable",
        ),
    ),
    # About the command itself: the same command will be refused again.
    Finding(
        EncoderRejected,
        "The encoder refused the command.",
        (
            "Unrecognized option",
            "Option not found",
            "Error splitting the argument list",
            "Error parsing options",
            "Error parsing filterchain",
            "Error initializing filters",
            "No such filter",
            "Unknown encoder",
            "Unknown decoder",
            "Unknown input format",
            "Requested output format",
            "Error while opening encoder",
        ),
    ),
    # The bytes could not be had; that says nothing of the bytes.
    Finding(
        StorageUnavailable,
        "The source could not be read from storage.",
        (
            "Error opening input: No such file or directory",
            "Error opening input: Permission denied",
            "Input/output error",
            "Stale file handle",
            "Transport endpoint is not connected",
        ),
    ),
    # Damage on the way is decoded around and is no failure; these are said when nothing comes of it.
    Finding(
        SourceUnreadable,
        "The file is damaged: it could not be decoded.",
        (
            "Error opening input: Invalid data found when processing input",
            "moov atom not found",
            "Decode error rate",
            "Cannot determine format of input",
        ),
    ),
)


# Failures of a step on a GPU that are not the GPU's.
_NOT_THE_GPU = (GpuBusy, GpuFailed, ScratchFull, StorageUnavailable, ObjectMissing, Drained)
# An "Input/output error" may be the disk's or a device's: it is the disk's when it came while reading.
_READING = ("Error opening input", "Error during demuxing", "Stale file handle", "Transport endpoint is not connected")


def has_no_device(said: str) -> bool:
    """Tell a device that cannot be had at all from one that refuses what it was asked."""
    return any(words in said for words in NO_DEVICE.words)


def on_device(error: VlogError, *, decoded_there: bool) -> VlogError:
    """Say what a failure means of a step on a GPU: whatever the CPU might do better sends the rendition there.

    A crash, a refusal, a stall and segments that are not as they should be may all be the device's doing, and then a
    second try costs as much as the first. What the CPU could not decode is the source's fault; what a device could
    not, may be the device's.
    """
    by_encoder = error.detail.startswith(SAID_BY_ENCODER)
    if isinstance(error, StorageUnavailable) and by_encoder and not any(words in error.detail for words in _READING):
        return GpuFailed("The GPU did not encode this: input or output failed.", detail=error.detail)
    if isinstance(error, _NOT_THE_GPU) or (isinstance(error, SourceError) and not decoded_there):
        return error
    return GpuFailed(f"The GPU did not encode this: {error.sentence}", detail=error.detail)


def diagnose(code: int, said: str, detail: str) -> VlogError:
    """Name the failure of a process that ended with `code` and said so much on stderr."""
    for finding in TABLE if code > 0 else (FULL,):
        if any(words in said for words in finding.words):
            return finding.error(finding.sentence, detail=detail)
    if code == -9:
        return EncoderKilled("The encoder was killed by signal 9; the system may be short of memory.", detail=detail)
    how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
    return EncoderCrashed(f"The encoder {how}.", detail=detail)
