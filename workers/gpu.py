"""The gpu pool is served only where a GPU works: found out at the start, by encoding."""

import logging
from collections.abc import Sequence

from contracts.errors import VlogError
from contracts.queues import Pool
from media.gpu import Gpu, detect
from media.tools import Toolbox
from runtime.settings import Settings

log = logging.getLogger(__name__)

HOW_TO_MEND = "docs/workers.md says what each maker's device needs; `vlog doctor` tries it."


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
    found = await detect(tools, wanted=settings.gpu_encoder, device=settings.gpu_device or "")
    if found:
        log.info("GPU: %s", found.shown() | {"encoders": found.names})
        return tuple(pools), found
    tried = "\n".join(f"  {attempt}" for attempt in found.attempts)
    others = tuple(pool for pool in pools if pool is not Pool.GPU)
    if not others:
        raise NoGpu(f"No GPU of this machine encodes. {HOW_TO_MEND} Tried:", detail=tried)
    log.warning("no GPU of this machine encodes; serving %s only. %s Tried:\n%s", ", ".join(others), HOW_TO_MEND, tried)
    return others, found


def capabilities(gpu: Gpu) -> dict[str, object]:
    """Tell the mirror, for routing and for people; nothing where there is no GPU."""
    return {"encoders": gpu.names, "gpu": gpu.shown()} if gpu else {}
