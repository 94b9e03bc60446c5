"""Whether there is no video yet: then an empty folder is a new storage, and not one whose disk is not mounted."""

import asyncio
from collections.abc import Callable

from sqlalchemy import exists, select

from mirror.sessions import Database
from mirror.tables import Video

ANSWER_S = 1.0


async def is_new(database: Database) -> bool:
    """Tell whether there is no video yet, whose files would have to be somewhere."""
    async with database.read() as session:
        return not (await session.execute(select(exists().select_from(Video)))).scalar_one()


async def newness(database: Database) -> Callable[[], bool]:
    """Let threads ask from now on. While Postgres does not answer it is no: the disk may be away with it."""
    loop, known = asyncio.get_running_loop(), await is_new(database)

    def ask() -> bool:
        nonlocal known
        if known:  # what is no longer new never is again
            asking = asyncio.run_coroutine_threadsafe(is_new(database), loop)
            try:
                known = asking.result(ANSWER_S)
            except Exception:
                asking.cancel()
                return False
        return known

    return ask
