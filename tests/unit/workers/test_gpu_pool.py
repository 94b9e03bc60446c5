"""What a worker, and the doctor, make of a GPU that is there, or is not."""

from pathlib import Path

import pytest

from contracts.queues import Pool
from contracts.states import Codec
from media.devices import Family, GpuEncoder
from media.gpu import Attempt, Gpu
from media.tools import Toolbox
from runtime.settings import Settings
from tests.support.media_facts import tool, toolbox
from workers import gpu as workers_gpu
from workers.gpu import NoGpu, capabilities, examine_gpu, look_for_gpu, mends

CARD = Gpu(
    (
        GpuEncoder(Family.NVENC, Codec.H264, tool(), decodes=frozenset({"h264", "hevc"})),
        GpuEncoder(Family.NVENC, Codec.HEVC, tool(), decodes=frozenset({"h264", "hevc"})),
    ),
    (Attempt("av1_nvenc", "8.1-first", "", "No capable devices found"),),
)
NO_DRIVER = Gpu(attempts=(Attempt("h264_nvenc", "8.1-first", "", "Cannot load libcuda.so.1"),))


def settings(**changes: object) -> Settings:
    return Settings(home=Path("/nowhere"), **changes)  # type: ignore[arg-type]


def finding(monkeypatch: pytest.MonkeyPatch, gpu: Gpu) -> list[dict[str, object]]:
    asked: list[dict[str, object]] = []

    async def detect(tools: Toolbox, **how: object) -> Gpu:
        asked.append(how)
        return gpu

    monkeypatch.setattr(workers_gpu, "detect", detect)
    return asked


async def test_a_worker_that_serves_no_gpu_pool_looks_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = finding(monkeypatch, CARD)
    pools, gpu = await look_for_gpu(settings(), (Pool.CPU, Pool.IO), toolbox())
    assert (pools, gpu, asked) == ((Pool.CPU, Pool.IO), Gpu(), []) and capabilities(gpu) == {}


async def test_what_a_gpu_can_is_told_to_routing_and_to_people(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = finding(monkeypatch, CARD)
    named = settings(gpu_encoder="h264_nvenc, hevc_nvenc", gpu_device="1")
    pools, gpu = await look_for_gpu(named, (Pool.GPU, Pool.CPU), toolbox())
    assert pools == (Pool.GPU, Pool.CPU)
    assert (asked[0]["wanted"], asked[0]["device"]) == (("h264_nvenc", "hevc_nvenc"), "1")
    told = capabilities(gpu)
    assert told["encoders"] == {"h264": "h264_nvenc", "hevc": "hevc_nvenc"}
    assert told["gpu"]["vendor"] == "NVIDIA" and told["gpu"]["sessions"] == 3
    assert told["gpu"]["decode"] == ["h264", "hevc"] and told["gpu"]["scale"] is True


async def test_without_a_gpu_the_other_pools_are_served_and_the_reason_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    finding(monkeypatch, NO_DRIVER)
    pools, gpu = await look_for_gpu(settings(), (Pool.GPU, Pool.CPU), toolbox())
    assert pools == (Pool.CPU,) and not gpu and capabilities(gpu) == {}
    assert "serving cpu only" in caplog.text and "Cannot load libcuda.so.1" in caplog.text and "--gpus" in caplog.text


async def test_a_worker_for_the_gpu_alone_does_not_start_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    finding(monkeypatch, NO_DRIVER)
    with pytest.raises(NoGpu) as refused:
        await look_for_gpu(settings(), (Pool.GPU,), toolbox())
    assert "h264_nvenc with ffmpeg 8.1-first: Cannot load libcuda.so.1" in str(refused.value)


async def test_the_doctor_shows_a_gpu_and_finds_fault_only_with_one_that_was_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    finding(monkeypatch, CARD)
    shown = await examine_gpu(settings(), toolbox())
    assert shown["encoders"] == {"h264": "h264_nvenc", "hevc": "hevc_nvenc"} and "ok" not in shown
    assert shown["tried"] == ["av1_nvenc with ffmpeg 8.1-first: No capable devices found"]
    finding(monkeypatch, NO_DRIVER)
    assert (await examine_gpu(settings(), toolbox()))["ok"] is True
    asked_for = await examine_gpu(settings(gpu_encoder="h264_nvenc"), toolbox())
    assert asked_for["ok"] is False and "--gpus all" in asked_for["mend"][0]


@pytest.mark.parametrize(
    ("said", "how"),
    [
        ("no ffmpeg here has it", "VLOG_FFMPEG"),
        ("no such device on this machine", "--device /dev/dri"),
        ("Driver does not support the required nvenc API version. Required: 13.0 Found: 12.2", "newer NVIDIA driver"),
        ("Failed to open /dev/dri/renderD128: Permission denied", "render"),
        ("No VA display found for device /dev/dri/renderD128.", "mesa-va-drivers"),
        ("Driver does not support any RC mode compatible with selected options (supported modes: CQP).", "enable_guc"),
        ("OpenEncodeSessionEx failed: out of memory (10): (no details)", "session"),
    ],
)
def test_answers_come_with_a_way_to_mend_them(said: str, how: str) -> None:
    (advice,) = mends(Gpu(attempts=(Attempt("h264_x", "8.1", "", said),)))
    assert how in advice
