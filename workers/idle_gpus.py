"""Where the plan step learns which GPUs are idle."""

import asyncio
import logging

from contracts.ids import JobId
from contracts.plan import IdleGpu
from mirror import reads_workers
from mirror.sessions import Database

log = logging.getLogger(__name__)

ANSWER_S = 2.0


class IdleGpus:
    def __init__(self, database: Database, *, heard_within_s: float) -> None:
        self._database, self._heard_within_s = database, heard_within_s

    async def __call__(self, job_id: JobId) -> tuple[IdleGpu, ...]:
        """Name those that have room; none when Postgres does not say so at once, for the CPU is always there."""
        try:
            async with asyncio.timeout(ANSWER_S), self._database.read() as session:
                found = await reads_workers.idle_gpus(session, heard_within_s=self._heard_within_s, but=job_id)
        except Exception as error:
            log.warning("idle GPUs not known, the CPU takes all: %s", type(error).__name__)
            return ()
        return tuple(found)
