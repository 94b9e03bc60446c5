"""An API tells that it has started: workers which speak through it get a while before they count as silent."""

import asyncio

import structlog

from mirror.marks import api_started
from mirror.sessions import Database

log = structlog.get_logger(__name__)

AGAIN_S = 2.0


async def announce(database: Database) -> None:
    """Write it down, once; a Postgres that is away is waited for."""
    while True:
        try:
            async with database.write() as session:
                await api_started(session)
            return
        except Exception as error:
            log.warning("api_start_not_recorded", error=type(error).__name__)
        await asyncio.sleep(AGAIN_S)
