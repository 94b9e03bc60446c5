"""How many steps of each pool one worker runs at once: what the settings say, else what the machine can carry."""

from collections.abc import Iterable

from contracts.queues import Pool
from runtime.settings import Settings
from workers.machine import Machine

# One process that decodes once and encodes the rungs of a 1080p video keeps two cores busy …
CORES_PER_ENCODE = 2
# … and has about this much memory in use.
BYTES_PER_ENCODE = 1 << 30
# The rest is for the worker itself, the system, and the cache of files that makes reading fast.
MEMORY_SHARE = 0.8


def slots(pool: Pool, settings: Settings, machine: Machine) -> int:
    """Say how many steps of a pool run at once, however many are queued."""
    match pool:
        case Pool.CPU:
            # Two at least, so that sound and thumbnail do not queue behind the picture on a small machine.
            of_all = max(2, min(int(machine.cores / CORES_PER_ENCODE), _by_memory(machine)))
            return settings.cpu_slots or max(1, of_all // settings.machine_workers)
        case Pool.GPU:
            # The device encodes; reading, and often decoding and scaling, keeps a core busy all the same.
            of_all = min(int(machine.cores), _by_memory(machine))
            # Sessions are not shared: workers of one machine have a device each.
            return settings.gpu_slots or max(1, min(machine.gpu_sessions, of_all // settings.machine_workers))
        case Pool.IO:
            return settings.io_slots
        case Pool.PROBE:
            return settings.probe_slots
        case Pool.ANALYSIS:
            return settings.analysis_slots
        case Pool.ORCHESTRATE:
            return settings.orchestrate_slots


def all_slots(pools: Iterable[Pool], settings: Settings, machine: Machine) -> dict[Pool, int]:
    return {pool: slots(pool, settings, machine) for pool in pools}


def memory_for_steps(settings: Settings, machine: Machine) -> int:
    return settings.worker_memory or int(machine.memory_bytes * MEMORY_SHARE / settings.machine_workers)


def _by_memory(machine: Machine) -> int:
    return int(machine.memory_bytes * MEMORY_SHARE / BYTES_PER_ENCODE)
