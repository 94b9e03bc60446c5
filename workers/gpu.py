"""The gpu pool is served only where a GPU works: that is found out at the start, by encoding."""

import logging
from collections.abc import Sequence
from typing import Any

from contracts.errors import VlogError
from contracts.queues import Pool
from media.gpu import TRIAL_S, Gpu, detect
from media.tools import Toolbox
from runtime.settings import Settings

log = logging.getLogger(__name__)

# What an answer asks for. The rest is in docs/workers.md, "GPU".
_MENDS = (
    (
        ("no ffmpeg here has it",),
        "an ffmpeg that was built with it: Debian's has NVENC, QSV and VAAPI; name it with VLOG_FFMPEG",
    ),
    (
        ("no such device",),
        "no /dev/dri here: load the kernel's driver; in a container, --device /dev/dri",
    ),
    (
        ("Cannot load libcuda", "Cannot load libnvidia-encode", "CUDA_ERROR_NO_DEVICE", "CUDA_ERROR_UNKNOWN"),
        "NVIDIA's driver with its encode library; in a container, --gpus all and NVIDIA_DRIVER_CAPABILITIES=all",
    ),
    (("nvenc API version",), "a newer NVIDIA driver, or an ffmpeg that asks for less"),
    (("Permission denied",), "the right to open the device: usermod -aG render for the worker's user"),
    (
        ("No VA display", "Failed to initialise VAAPI", "entrypoint", "MFX session", "QSV device"),
        "the VA-API driver (intel-media-va-driver-non-free or mesa-va-drivers) and membership of the group render",
    ),
    (("any RC mode",), "the firmware that knows bit rates: i915.enable_guc=2 for the kernel"),
    (("OpenEncodeSessionEx",), "a free encoder session: other programs hold them all"),
)


class NoGpu(VlogError):
    """A worker that was to serve the gpu pool and nothing else has no GPU that works."""

    def __str__(self) -> str:
        return f"{self.sentence}\n{self.detail}"


async def look_for_gpu(settings: Settings, pools: Sequence[Pool], tools: Toolbox) -> tuple[tuple[Pool, ...], Gpu]:
    """Give the pools that can be served, and the GPU; the gpu pool is left out, with a warning, where none works.

    Steps would be routed to it, fail and come down to the CPU again, each a while later. A worker with no other pool
    does not start at all: whoever started it wants to know.
    """
    if Pool.GPU not in pools:
        return tuple(pools), Gpu()
    found = await _detected(settings, tools)
    if found:
        log.info("GPU: %s", found.shown() | {"encoders": found.names})
        return tuple(pools), found
    told = "\n".join(
        [*(f"  tried {attempt}" for attempt in found.attempts), *(f"  mend: {how}" for how in mends(found))]
    )
    others = tuple(pool for pool in pools if pool is not Pool.GPU)
    if not others:
        raise NoGpu("No GPU of this machine encodes, and no other pool is to be served.", detail=told)
    log.warning("no GPU of this machine encodes; serving %s only\n%s", ", ".join(others), told)
    return others, found


def capabilities(gpu: Gpu) -> dict[str, Any]:
    """Tell the mirror, for routing and for people; nothing where there is no GPU."""
    return {"encoders": gpu.names, "gpu": gpu.shown()} if gpu else {}


async def examine_gpu(settings: Settings, tools: Toolbox, *, trial_s: float = TRIAL_S) -> dict[str, Any]:
    """Tell the doctor. No GPU is no fault, unless one was asked for by name."""
    found = await _detected(settings, tools, trial_s)
    tried = [str(attempt) for attempt in found.attempts]
    if found:
        return found.shown() | {"encoders": found.names, "tried": tried}
    asked = settings.gpu_encoder or settings.gpu_device
    return {"ok": not asked, "found": "none; the CPU encodes", "tried": tried, "mend": mends(found)}


def mends(found: Gpu) -> list[str]:
    """Say what might make a GPU work, by what the attempts answered."""
    said = " ".join(attempt.said for attempt in found.attempts)
    return [how for words, how in _MENDS if any(word in said for word in words)]


async def _detected(settings: Settings, tools: Toolbox, trial_s: float = TRIAL_S) -> Gpu:
    return await detect(tools, wanted=settings.gpu_encoder, device=settings.gpu_device or "", trial_s=trial_s)
