"""What a worker says of itself: for routing, for plans, and for people."""

from collections.abc import Mapping
from typing import Any

from contracts.queues import Pool
from media.gpu import Gpu
from media.tools import Toolbox
from workers.gpu import capabilities
from workers.machine import Machine


def about(slots: Mapping[Pool, int], machine: Machine, tools: Toolbox, gpu: Gpu) -> dict[str, Any]:
    """Describe a worker of these pools."""
    return {
        "pools": [pool.value for pool in slots],
        "slots": {pool.value: room for pool, room in slots.items()},
        "cores": machine.cores,
        "memory_bytes": machine.memory_bytes,
        "ffmpeg": [{"version": tool.version, "build": tool.build, "origin": tool.origin} for tool in tools.tools],
        **capabilities(gpu),
    }
