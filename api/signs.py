"""Signs of life, noted together once in a while: two hundred waiting machines are not two hundred transactions."""

import asyncio
from collections import Counter

import structlog

from mirror import writes_signs
from mirror.sessions import Database
from mirror.writes_signs import Signs

log = structlog.get_logger(__name__)

EVERY_S = 1.0
AGAIN_S = 5.0
MOST = 10_000


class SignsOfLife:
    """One per API process. Its calls never fail and never wait; plans count on a worker a moment later."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._noted = Signs()
        self._news = asyncio.Event()

    def asks(self, worker_id: str) -> None:
        """Note that a worker asks for work."""
        self._note(Signs(asks={worker_id}))

    def beats(self, worker_id: str) -> None:
        """Note that a worker says what it said before: that it lives."""
        self._note(Signs(beats=Counter([worker_id])))

    def uses(self, key_id: int) -> None:
        """Note that a key was shown."""
        self._note(Signs(keys={key_id}))

    def _note(self, more: Signs) -> None:
        if len(self._noted) < MOST:
            self._noted.add(more)
            self._news.set()

    async def run(self) -> None:
        """Write what was noted, for ever; while Postgres is away it waits."""
        while await self._news.wait():
            noted, self._noted = self._noted, Signs()
            self._news.clear()
            try:
                async with self._database.write() as session:
                    late = await writes_signs.take(session, noted)
            except Exception as error:
                log.warning("signs_not_noted", count=len(noted), error=type(error).__name__)
                late = noted
                await asyncio.sleep(AGAIN_S)
            if late:
                self._note(late)
            await asyncio.sleep(EVERY_S)
