# ruff: noqa: E501  (what ffmpeg says is not wrapped)
"""What ffmpeg's last words mean. The samples are what ffmpeg 7.0.2 and 8.1.2 really said when they were provoked
(tests/integration/media/test_diagnosis.py does it again); those of GPUs are from people's reports."""

import pytest

from contracts.errors import (
    Drained,
    EncoderCrashed,
    EncoderKilled,
    EncoderOutOfMemory,
    EncoderRejected,
    EncoderStalled,
    GpuBusy,
    GpuFailed,
    ObjectMissing,
    OutputIncomplete,
    ScratchFull,
    SourceUnreadable,
    StorageUnavailable,
    VlogError,
)
from media.diagnosis import TABLE, diagnose, has_no_device, on_device

OPENING = "Error opening output file o.mp4.\nError opening output files: Invalid argument"

MAYBE = "[vost#0:0 @ 0x1b6] Error while opening encoder - maybe incorrect parameters such as bit_rate, rate, width or height."

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
    # Consumer cards say it so since 2024: obsproject/obs-studio 11259, keylase/nvidia-patch 987.
    (234, "GPU_BUSY", f"[h264_nvenc @ 0x1b6] OpenEncodeSessionEx failed: incompatible client key (21): (no details)\n{MAYBE}\n[vf#6:0 @ 0x1b6] Error sending frames to consumers: Invalid argument"),
    (1, "GPU_FAILED", f"[h264_nvenc @ 0x1ae] Driver does not support the required nvenc API version. Required: 12.1 Found: 12.0\n[h264_nvenc @ 0x1ae] The minimum required Nvidia driver for nvenc is (unknown) or newer\n{MAYBE}"),
    (1, "GPU_FAILED", f"[hevc_nvenc @ 0x1de] B frames as references are not supported\n[hevc_nvenc @ 0x1de] No capable devices found\n{MAYBE}"),
    (1, "GPU_FAILED", f"[hevc_nvenc @ 0x174] B frames as references are not supported\n[hevc_nvenc @ 0x174] Provided device doesn't support required NVENC features\n{MAYBE}"),
    (1, "GPU_FAILED", f"[h264_nvenc @ 0x957] InitializeEncoder failed: invalid param (8): Frame Dimension less than the minimum supported value.\n{MAYBE}"),
    (1, "GPU_FAILED", "[h264_nvenc @ 0x7f6] Failed creating CUDA context for NVENC: 0x2\n[h264_nvenc @ 0x7f6] No NVENC capable devices found"),
    (1, "GPU_FAILED", "[hevc_nvenc @ 0x1b1] Failed locking bitstream buffer: not enough buffer (14)\nVideo encoding failed"),
    (1, "GPU_FAILED", "[h264 @ 0x164] decoder->cvdl->cuvidCreateDecoder(&decoder->decoder, params) failed -> CUDA_ERROR_INVALID_VALUE: invalid argument\n[h264 @ 0x164] Using more than 32 (46) decode surfaces might cause nvdec to fail.\n[h264 @ 0x164] Failed setup for format cuda: hwaccel initialisation returned error."),
    (1, "GPU_FAILED", "[h264_cuvid @ 0x55b] ctx->cvdl->cuvidMapVideoFrame(ctx->cudecoder, parsed_frame.dispinfo.picture_index, &mapped_frame, &pitch, &params) failed -> CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure\nError while decoding stream #0:0: Generic error in an external library"),
    (1, "GPU_FAILED", "[h264 @ 0x1e8] No decoder surfaces left"),
    (1, "GPU_FAILED", f"[h264_vaapi @ 0x556] No usable encoding entrypoint found for profile VAProfileH264High (7).\n{MAYBE}"),
    (234, "GPU_FAILED", f"[h264_vaapi @ 0x559] Driver does not support any RC mode compatible with selected options (supported modes: CQP).\n{MAYBE}"),
    (251, "GPU_FAILED", "[h264_vaapi @ 0x559] Failed to end picture encode issue: 6 (invalid VASurfaceID).\n[h264_vaapi @ 0x559] Encode failed: -5.\nVideo encoding failed: Input/output error"),
    (251, "GPU_FAILED", "[vp9_vaapi @ 0x559] Failed to map output buffers: 24 (internal encoding error).\n[vp9_vaapi @ 0x559] Output failed: -5.\nError submitting video frame to the encoder"),
    (1, "GPU_FAILED", "[AVHWFramesContext @ 0x7fe] Failed to sync surface 0x14: 23 (internal decoding error).\nError while filtering: Input/output error"),
    (1, "GPU_FAILED", f"[h264_qsv @ 0x1fb] Error initializing an internal MFX session: unsupported (-3)\n{MAYBE}"),
    (1, "GPU_FAILED", "[AVHWDeviceContext @ 0x55f] Error creating a MFX session: -9.\nDevice creation failed: -1313558101.\n[dec:hevc_qsv @ 0x55f] No device available for decoder: device type qsv needed for codec hevc_qsv."),
    (1, "GPU_FAILED", f"[h264_qsv @ 0x557] Error initializing the encoder: unsupported (-3)\n{MAYBE}"),
    (251, "GPU_FAILED", "[av1_qsv @ 0x228] Error during encoding: device failed (-17)\n[enc:av1_qsv @ 0x228] Error encoding a frame: I/O error\n[vost#0:0/av1_qsv @ 0x228] Task finished with error code: -5 (I/O error)"),
    (1, "GPU_FAILED", "[AVHWDeviceContext @ 0x317] No supported child device type is enabled\nError creating a QSV device"),
    (1, "GPU_FAILED", "[h264_videotoolbox @ 0x7f9] Error: cannot create compression session: -12903"),
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


THE_GPUS = (EncoderCrashed, EncoderKilled, EncoderOutOfMemory, EncoderRejected, EncoderStalled, OutputIncomplete)
NOT_THE_GPUS = (GpuBusy, ScratchFull, StorageUnavailable, ObjectMissing, Drained)


@pytest.mark.parametrize("kind", THE_GPUS)
def test_whatever_breaks_on_a_gpu_is_left_to_the_cpu(kind: type[VlogError]) -> None:
    told = on_device(kind("The encoder broke.", detail="tail"), decoded_there=False)
    assert isinstance(told, GpuFailed) and told.kind == "descend"
    assert told.sentence == "The GPU did not encode this: The encoder broke." and told.detail == "tail"


@pytest.mark.parametrize("kind", NOT_THE_GPUS)
def test_what_is_not_the_gpus_doing_stays_what_it_is(kind: type[VlogError]) -> None:
    error = kind("It is something else.")
    assert on_device(error, decoded_there=True) is error


def test_a_source_is_to_blame_only_when_the_cpu_could_not_decode_it() -> None:
    error = SourceUnreadable("The file is damaged: it could not be decoded.")
    assert on_device(error, decoded_there=False) is error
    assert isinstance(on_device(error, decoded_there=True), GpuFailed)


def test_an_input_output_error_is_the_disks_when_it_came_while_reading() -> None:
    read = "exit code 251: ffmpeg\n[in#0/mov,mp4 @ 0x7f] Error during demuxing: Input/output error"
    written = (
        "exit code 251: ffmpeg\n[vost#0:0/hevc_vaapi @ 0x22] Task finished with error code: -5 (Input/output error)"
    )
    for said, kind in ((read, StorageUnavailable), (written, GpuFailed)):
        found = diagnose(251, said, said)
        assert isinstance(found, StorageUnavailable)
        assert isinstance(on_device(found, decoded_there=False), kind)


def test_a_device_that_is_not_there_is_told_from_one_that_refuses() -> None:
    assert has_no_device("[h264_nvenc @ 0x56] Cannot load libcuda.so.1")
    assert not has_no_device("[hevc_nvenc @ 0x1de] No capable devices found")
