# ruff: noqa: E501  (what ffmpeg says is not wrapped)
"""What ffmpeg's last words mean. The samples are what ffmpeg 7.0.2 and 8.1.2 really said when they were provoked
(tests/integration/media/test_diagnosis.py does it again); those of GPUs are from people's reports."""

import pytest

from media.diagnosis import TABLE, diagnose

OPENING = "Error opening output file o.mp4.\nError opening output files: Invalid argument"

SAMPLES = [
    (183, "SOURCE_UNREADABLE", "[in#0 @ 0x7f] moov atom not found\n[in#0 @ 0x7f] Error opening input: Invalid data found when processing input"),
    (69, "SOURCE_UNREADABLE", "[h264 @ 0xc9] Error splitting the input into NAL units.\n[dec:h264 @ 0xc9] Decode error rate 1 exceeds maximum 0.666667\n[vost#0:0/libx264 @ 0xc9] Could not open encoder before EOF"),
    (183, "SOURCE_UNREADABLE", "[vf#0:0 @ 0x7f] Cannot determine format of input 0:0 after EOF"),
    (254, "STORAGE_UNAVAILABLE", "[in#0 @ 0x7f] Error opening input: No such file or directory\nError opening input file file:gone.mp4."),
    (251, "STORAGE_UNAVAILABLE", "[in#0/mov,mp4 @ 0x7f] Error during demuxing: Input/output error"),
    (228, "SCRATCH_FULL", "[out#0/matroska @ 0x7f] Error writing trailer: No space left on device"),
    (228, "SCRATCH_FULL", "[out#0/hls @ 0x7f] Error muxing a packet\n[out#0/hls @ 0x7f] Error closing file: Disk quota exceeded"),
    (8, "ENCODER_REJECTED", "Unrecognized option 'nope'.\nError splitting the argument list: Option not found"),
    (8, "ENCODER_REJECTED", "[vost#0:0 @ 0x7f] Unknown encoder 'libnope'\n[vost#0:0 @ 0x7f] Error selecting an encoder"),
    (8, "ENCODER_REJECTED", "[AVFilterGraph @ 0x7f] No such filter: 'nope'\nError opening output files: Filter not found"),
    (234, "ENCODER_REJECTED", f"[Parsed_scale_0 @ 0x7f] Invalid size 'nope'\n[AVFilterGraph @ 0x7f] Error initializing filters\n{OPENING}"),
    (234, "ENCODER_REJECTED", f"[AVFormatContext @ 0x7f] Requested output format 'nope' is not known.\n{OPENING}"),
    (234, "ENCODER_REJECTED", f"Stream map '0:7' matches no streams.\nError parsing options for output file o.mp4.\n{OPENING}"),
    (187, "ENCODER_REJECTED", "[libx264 @ 0x7f] width not divisible by 2 (1x1)\n[enc:libx264 @ 0x7f] Error while opening encoder - maybe incorrect parameters such as bit_rate, rate, width or height."),
    # Without memory x264 says that its parameters may be wrong; they are not.
    (187, "ENCODER_OUT_OF_MEMORY", "x264 [error]: malloc of size 44329344 failed\n[enc:libx264 @ 0x7f] Error while opening encoder - maybe incorrect parameters such as bit_rate, rate, width or height."),
    (244, "ENCODER_OUT_OF_MEMORY", "[vf#0:0 @ 0x34] Task finished with error code: -12 (Cannot allocate memory)"),
    (224, "ENCODER_CRASHED", "[out#0/matroska @ 0x7f] Error closing file: Broken pipe"),
    (-9, "ENCODER_CRASHED", ""),
    (-11, "ENCODER_CRASHED", "[h264 @ 0xc9] Error splitting the input into NAL units."),
    (1, "ENCODER_CRASHED", "something nobody has seen before"),
    # Damage that was decoded around is said as well, and is not why it failed.
    (228, "SCRATCH_FULL", "[h264 @ 0xc9] Invalid NAL unit size (438380591 > 684).\n[dec:h264 @ 0xc9] Decoding error: Invalid data found when processing input\n[out#0/hls @ 0x7f] Error closing file: No space left on device"),
    (224, "ENCODER_CRASHED", "[dec:h264 @ 0xc9] Decoding error: Invalid data found when processing input\n[out#0/hls @ 0x7f] Error muxing a packet: Broken pipe"),
    (1, "GPU_BUSY", "[h264_nvenc @ 0x56] OpenEncodeSessionEx failed: out of memory (10): (no details)\n[h264_nvenc @ 0x56] No capable devices found\nError while opening encoder for output stream #0:1 - maybe incorrect parameters"),
    (1, "GPU_BUSY", "[h264_nvenc @ 0x56] dl_fn->cuda_dl->cuCtxCreate(&ctx->cu_context_internal, 0, cu_device) failed -> CUDA_ERROR_OUT_OF_MEMORY: out of memory\n[h264_nvenc @ 0x56] No NVENC capable devices found"),
    (1, "GPU_FAILED", "[h264_nvenc @ 0x56] Cannot load libcuda.so.1"),
    (1, "GPU_FAILED", "[AVHWDeviceContext @ 0x56] cu->cuInit(0) failed -> CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected"),
    (1, "GPU_FAILED", "[AVHWDeviceContext @ 0x56] No VA display found for device /dev/dri/renderD128.\nDevice creation failed: -22."),
]  # fmt: skip


@pytest.mark.parametrize(("code", "expected", "said"), SAMPLES)
def test_a_failure_is_named_by_what_ffmpeg_said(code: int, expected: str, said: str) -> None:
    error = diagnose(code, said, "detail")
    assert error.code == expected and error.detail == "detail"
    assert "/" not in error.sentence and len(error.sentence) < 200


def test_every_line_of_the_table_has_a_sample() -> None:
    said = "\n".join(text for _, _, text in SAMPLES)
    for finding in TABLE:
        assert any(words in said for words in finding.words), finding
