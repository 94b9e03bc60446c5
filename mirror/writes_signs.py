"""Signs of life of many workers at once. What changes what people see of a worker is written by `writes_workers`."""

from collections import Counter
from collections.abc import Set
from dataclasses import dataclass, field

from sqlalchemy import select, text

from contracts.states import WorkerStanding, WorkerStatus
from mirror.events import TOPIC_WORKERS, notify_all
from mirror.sessions import WriteSession
from mirror.tables import Worker
from mirror.writes_workers import standing_of, take_word


@dataclass
class Signs:
    """Who asked for work, who said how often that it lives, and which keys were shown."""

    asks: set[str] = field(default_factory=set)
    beats: Counter[str] = field(default_factory=Counter)
    keys: set[int] = field(default_factory=set)

    def add(self, more: "Signs") -> None:
        self.asks |= more.asks
        self.beats += more.beats
        self.keys |= more.keys

    def __len__(self) -> int:
        return len(self.asks) + len(self.beats) + len(self.keys)


# The same text for however many, so that Postgres has it prepared.
_WORKERS = text(
    """
    WITH told AS (
        SELECT w.id, s.asks, s.beats
        FROM unnest(CAST(:worker_ids AS text[]), CAST(:asks AS boolean[]), CAST(:beats AS integer[]))
            AS s (worker_id, asks, beats)
        JOIN workers w USING (worker_id)
        FOR NO KEY UPDATE OF w SKIP LOCKED
    )
    UPDATE workers w
    SET last_heartbeat = clock_timestamp(),
        asked_at = CASE WHEN told.asks THEN clock_timestamp() ELSE w.asked_at END,
        heartbeats = w.heartbeats + told.beats
    FROM told WHERE w.id = told.id
    RETURNING w.worker_id, w.status, w.revoked_at
    """
)
_KEYS = text(
    """
    UPDATE worker_api_keys SET last_used_at = now() WHERE id IN (
        SELECT id FROM worker_api_keys WHERE id = ANY (CAST(:keys AS integer[])) FOR NO KEY UPDATE SKIP LOCKED
    )
    """
)


@dataclass(frozen=True)
class Taken:
    late: Signs  # of those whose rows somebody else is at: waiting for one with others in hand could wait for ever
    unwelcome: Set[str]  # disabled, revoked, or known no more


async def take(s: WriteSession, signs: Signs, waiting: Set[str] = frozenset()) -> Taken:
    """Take signs of life of workers that are what they were; who asks for work is then counted on.

    Who is `waiting` for an answer just now is there, whatever was thought of it; of others, one that asked a moment ago
    may have left since. A key that is just being revoked was used last a moment earlier.
    """
    workers = list(signs.asks | signs.beats.keys())
    told = {
        "worker_ids": workers,
        "asks": [worker_id in signs.asks for worker_id in workers],
        "beats": [signs.beats.get(worker_id, 0) for worker_id in workers],
    }
    rows = (await s.execute(_WORKERS, told)).all() if workers else []
    taken = {row.worker_id for row in rows}
    shut_out = {
        row.worker_id
        for row in rows
        if standing_of(WorkerStatus(row.status), row.revoked_at) is not WorkerStanding.WELCOME
    }
    silent = {row.worker_id for row in rows if row.status == WorkerStatus.OFFLINE and row.revoked_at is None}
    for worker_id in silent & waiting:
        await take_word(s, worker_id, WorkerStatus.ACTIVE, {})
    if signs.keys:
        await s.execute(_KEYS, {"keys": list(signs.keys)})
    await notify_all(s, TOPIC_WORKERS, list((signs.beats.keys() & taken) | (silent & waiting)))
    if len(taken) == len(workers):
        return Taken(Signs(), shut_out)
    left = [worker_id for worker_id in workers if worker_id not in taken]
    there = set(await s.scalars(select(Worker.worker_id).where(Worker.worker_id.in_(left))))  # not who was deleted
    beats = Counter({one: times for one, times in signs.beats.items() if one in there})
    return Taken(Signs(asks=signs.asks & there, beats=beats), shut_out | (set(left) - there))
