"""How much runs at once: in this process, and, as the mirror knows it, on all workers together."""

import logging
import os

from contracts.media import Capacity
from contracts.queues import Pool
from mirror import reads_workers
from mirror.sessions import Database
from runtime.settings import Settings

log = logging.getLogger(__name__)


def slots(pool: Pool, settings: Settings) -> int:
    """Say how many steps of a pool run at once."""
    match pool:
        case Pool.CPU:
            # Two at least, so that sound and thumbnail do not queue behind the picture on a small machine.
            return settings.cpu_slots or max(2, (os.cpu_count() or 2) // 2)
        case Pool.GPU:
            return settings.gpu_slots or 1
        case Pool.IO:
            return settings.io_slots
        case Pool.ANALYSIS:
            return 1
        case Pool.ORCHESTRATE:
            return 20


class CapacityHint:
    """A hint for cutting a video into spans."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database, self._settings = database, settings

    async def __call__(self) -> Capacity:
        """Count workers and their encoder slots; without an answer, this worker alone."""
        alone = Capacity(workers=1, slots=slots(Pool.CPU, self._settings))
        try:
            async with self._database.read() as session:
                seen = await reads_workers.capacity(
                    session, heard_within_s=3 * self._settings.worker_heartbeat_interval
                )
        except Exception as error:
            log.warning("capacity not known, planning for one worker: %s", error)
            return alone
        return seen if seen.workers and seen.slots else alone
