"""Who asks for work, noted together once in a while: two hundred waiting machines are not two hundred transactions."""

import asyncio

import structlog

from mirror import writes_workers
from mirror.sessions import Database

log = structlog.get_logger(__name__)

EVERY_S = 1.0
AGAIN_S = 5.0
MOST = 10_000


class Asking:
    """One per API process. Its calls never fail and never wait; plans count on a worker a moment later."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._asked: dict[str, None] = {}
        self._news = asyncio.Event()

    def note(self, worker_id: str) -> None:
        if len(self._asked) < MOST:
            self._asked[worker_id] = None
            self._news.set()

    async def run(self) -> None:
        """Write what was noted, for ever; while Postgres is away it waits."""
        while await self._news.wait():
            asked, self._asked = self._asked, {}
            self._news.clear()
            try:
                async with self._database.write() as session:
                    late = await writes_workers.workers_ask(session, list(asked))
            except Exception as error:
                log.warning("asking_not_noted", workers=len(asked), error=type(error).__name__)
                late = list(asked)
                await asyncio.sleep(AGAIN_S)
            for worker_id in late:
                self.note(worker_id)
            await asyncio.sleep(EVERY_S)
