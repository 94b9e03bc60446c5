"""A worker makes itself known, and says for ever that it lives; the mirror's answer is whether it may have work."""

import asyncio
import logging
from collections.abc import Callable

from contracts.states import WorkerStanding
from mirror import writes
from mirror.claims import WorkerRegistration
from mirror.recorder import StepRecorder
from mirror.sessions import Database

log = logging.getLogger(__name__)

AGAIN_S = 2.0


async def keep_registered(
    database: Database,
    registration: WorkerRegistration,
    recorder: StepRecorder,
    every_s: float,
    heard: Callable[[WorkerStanding], None],
) -> None:
    """Register, then heartbeat for ever; a Postgres that is away only delays it, and changes no standing."""
    registered, failed = False, 0
    while True:
        try:
            async with database.write() as session:
                if registered:
                    standing = await writes.worker_heartbeat(
                        session, registration.worker_id, recorder.status, failed=failed
                    )
                else:
                    standing = await writes.register_worker(session, registration)
            failed = 0 if registered else failed
            registered = standing is not WorkerStanding.UNKNOWN
            heard(standing)
        except Exception as error:
            failed += 1
            log.warning("worker heartbeat not written: %s", error)
        await asyncio.sleep(every_s if registered else AGAIN_S)
