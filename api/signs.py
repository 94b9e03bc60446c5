"""Signs of life, noted together once in a while: two hundred waiting machines are not two hundred transactions.

Whoever has a question for work open lives: the API says so for it, at every heartbeat, and hears for it how it stands.
What only repeats that, its next question or its word that it is still there, is left to the next heartbeat.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import structlog

from mirror import writes_signs
from mirror.sessions import Database
from mirror.writes_signs import Signs

log = structlog.get_logger(__name__)

EVERY_S = 1.0
AGAIN_S = 5.0
MOST = 10_000


class Question:
    """An open question for work: left by who asked, or shut out by a person."""

    def __init__(self) -> None:
        self.left = asyncio.Event()
        self.is_shut_out = False

    def shut_out(self) -> None:
        self.is_shut_out = True
        self.left.set()


class SignsOfLife:
    """One per API process. Its calls never fail and never wait; plans count on a worker a moment later."""

    def __init__(self, database: Database, heartbeat_s: float) -> None:
        self._database, self._heartbeat_s = database, heartbeat_s
        self._noted = Signs()
        self._open: defaultdict[str, set[Question]] = defaultdict(set)
        self._counted: set[str] = set()  # who waited at the last heartbeat, or has asked since: that is noted
        self._news = asyncio.Event()

    @contextmanager
    def asking(self, worker_id: str) -> Iterator[Question]:
        """Note that a worker asks for work, and for as long as it waits that it lives."""
        question = Question()
        if worker_id not in self._counted:
            self._counted.add(worker_id)
            self._note(Signs(asks={worker_id}))
        self._open[worker_id].add(question)
        try:
            yield question
        finally:
            self._open[worker_id].discard(question)
            if not self._open[worker_id]:
                del self._open[worker_id]

    def beats(self, worker_id: str) -> None:
        """Note that a worker says what it said before: that it lives."""
        self._note(Signs(beats=Counter([worker_id])), soon=worker_id not in self._counted)

    def uses(self, worker_id: str, key_id: int) -> None:
        """Note that a worker showed this key."""
        self._note(Signs(keys={key_id}), soon=worker_id not in self._counted)

    def _note(self, more: Signs, *, soon: bool = True) -> None:
        if len(self._noted) < MOST:
            self._noted.add(more)
            if soon:
                self._news.set()

    def left(self, worker_id: str) -> None:
        """End the questions of a worker that says that it leaves: a proxy may keep them open."""
        self._counted.discard(worker_id)
        for question in self._open.get(worker_id, ()):
            question.left.set()

    def _waiting(self) -> set[str]:
        """Give who waits; a question that was left is open until Temporal has let it go."""
        return {one for one, questions in self._open.items() if any(not each.left.is_set() for each in questions)}

    async def run(self) -> None:
        """Write what was noted, for ever; while Postgres is away it waits."""
        loop = asyncio.get_running_loop()
        beat_at = loop.time() + self._heartbeat_s
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(beat_at):
                    await self._news.wait()
            if loop.time() >= beat_at:
                beat_at = loop.time() + self._heartbeat_s
                self._counted = waiting = self._waiting()
                self._note(Signs(asks=waiting, beats=Counter(waiting)))
            noted, self._noted = self._noted, Signs()
            self._news.clear()
            if noted:
                await self._write(noted)
                await asyncio.sleep(EVERY_S)

    async def _write(self, noted: Signs) -> None:
        try:
            async with self._database.write() as session:
                taken = await writes_signs.take(session, noted, self._waiting())
        except Exception as error:
            log.warning("signs_not_noted", count=len(noted), error=type(error).__name__)
            self._note(noted)
            await asyncio.sleep(AGAIN_S)
            return
        if taken.late:
            self._note(taken.late)
        self._counted -= taken.unwelcome
        for worker_id in taken.unwelcome & self._open.keys():
            for question in self._open[worker_id]:
                question.shut_out()
