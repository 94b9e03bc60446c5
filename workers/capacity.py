"""How much runs at once on all workers together, as the mirror knows it."""

import logging

from contracts.ids import JobId
from contracts.plan import Capacity
from contracts.queues import Pool
from mirror import reads_workers
from mirror.sessions import Database
from runtime.settings import Settings
from workers.machine import this_machine
from workers.slots import slots

log = logging.getLogger(__name__)


class CapacityHint:
    """A hint for cutting a video into spans."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database, self._settings = database, settings

    async def __call__(self, job_id: JobId) -> Capacity:
        """Count workers, their encoder slots and who shares them; without an answer, this worker alone."""
        # Which ffmpegs the others have is not known then either: the plan is made with those of this machine.
        alone = Capacity(workers=1, slots=slots(Pool.CPU, self._settings, this_machine()))
        try:
            async with self._database.read() as session:
                seen = await reads_workers.capacity(
                    session, heard_within_s=3 * self._settings.worker_heartbeat_interval
                )
                seen = seen.model_copy(update={"jobs": await reads_workers.jobs_beside(session, job_id)})
        except Exception as error:
            log.warning("capacity not known, planning for one worker: %s", error)
            return alone
        return seen if seen.workers and seen.slots else alone
