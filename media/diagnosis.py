"""What ffmpeg's last words mean. One table, read from the top; the samples it was made from are its tests."""

from dataclasses import dataclass

from contracts.errors import (
    EncoderCrashed,
    EncoderKilled,
    EncoderOutOfMemory,
    EncoderRejected,
    GpuBusy,
    GpuFailed,
    ScratchFull,
    SourceUnreadable,
    StorageUnavailable,
    VlogError,
)


@dataclass(frozen=True)
class Finding:
    error: type[VlogError]
    sentence: str
    words: tuple[str, ...]


FULL = Finding(
    ScratchFull, "The disk for work in progress is full.", ("No space left on device", "Disk quota exceeded")
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
    Finding(
        GpuFailed,
        "The GPU cannot encode this.",
        (
            "OpenEncodeSessionEx failed",
            "No capable devices found",
            "CUDA_ERROR_",
            "Cannot load libcuda",
            "Cannot load libnvidia-encode",
            "Cannot load nvcuda",
            "No VA display found",
            "Failed to initialise VAAPI connection",
            "Error creating a MFX session",
            "Device creation failed",
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


def diagnose(code: int, said: str, detail: str) -> VlogError:
    """Name the failure of a process that ended with `code` and said so much on stderr."""
    for finding in TABLE if code > 0 else (FULL,):
        if any(words in said for words in finding.words):
            return finding.error(finding.sentence, detail=detail)
    if code == -9:
        return EncoderKilled("The encoder was killed by signal 9; the system may be short of memory.", detail=detail)
    how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
    return EncoderCrashed(f"The encoder {how}.", detail=detail)
