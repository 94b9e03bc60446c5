"""What people do with workers: register, disable, enable, revoke, delete, and their keys.

Each command locks the worker's row, changes it once and tells the audit log who did it; said twice it changes nothing.
Claims are not touched here: a worker that is there hands its steps back when its next beat is answered, one that is
dead loses them by their own clocks.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Interval, delete, func, literal, select, update

from contracts.states import EventLevel, WorkerStatus, WorkerType
from mirror.commands import Refused
from mirror.counting import count_before_forgetting
from mirror.events import TOPIC_WORKERS, Event, add_event, notify
from mirror.locking import database_now
from mirror.sessions import WriteSession
from mirror.tables import Worker, WorkerApiKey

USED_EVERY_S = 60.0  # `last_used_at` is for people, who do not need it to the second


@dataclass(frozen=True)
class NewKey:
    """What is kept of a key; the key itself is nowhere."""

    key_hash: str
    hash_version: int
    key_prefix: str
    expires_at: datetime | None = None


@dataclass(frozen=True)
class NewWorker:
    worker_id: str
    worker_name: str | None = None
    worker_type: WorkerType = WorkerType.REMOTE
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    version: str | None = None


async def admit(s: WriteSession, new: NewWorker, key: NewKey, actor: str | None) -> None:
    """Register a worker with its first key; it is active from now, and idle or busy by its first beat."""
    worker = Worker(
        worker_id=new.worker_id,
        worker_name=new.worker_name,
        worker_type=new.worker_type,
        status=WorkerStatus.ACTIVE,
        last_heartbeat=await database_now(s),
        capabilities=dict(new.capabilities),
        about=dict(new.metadata),
        version=new.version,
    )
    s.add(worker)
    await s.flush()
    await _keep(s, worker, key)
    await _tell(s, worker, "worker.registered", "was registered", actor, key_prefix=key.key_prefix)


async def disable(s: WriteSession, worker_id: str, actor: str | None) -> bool:
    """Give a worker no more work until it is enabled; False when there is no such worker."""
    worker = await _locked(s, worker_id)
    if worker is not None and worker.status is not WorkerStatus.DISABLED:
        was = worker.status
        worker.status = WorkerStatus.DISABLED
        await _tell(s, worker, "worker.disabled", "was disabled", actor, EventLevel.WARNING, was=was.value)
    return worker is not None


async def enable(s: WriteSession, worker_id: str, actor: str | None, *, silent_s: float) -> bool:
    """Take back a disable. A revoked worker that never had a key is let in again; one that had needs a new one."""
    worker = await _locked(s, worker_id)
    if worker is None:
        return False
    if worker.revoked_at is not None and await _has_keys(s, worker):
        raise Refused("WORKER_REVOKED", "Every key of this worker was revoked: give it a new one instead.")
    if worker.status is WorkerStatus.DISABLED or worker.revoked_at is not None:
        worker.revoked_at = None
        # Its next beat says whether it is idle or busy; of one that fell silent nobody should expect any.
        alive = await _heard_within(s, worker, silent_s)
        worker.status = WorkerStatus.ACTIVE if alive else WorkerStatus.OFFLINE
        await _tell(s, worker, "worker.enabled", "was enabled", actor)
    return True


async def revoke(s: WriteSession, worker_id: str, actor: str | None) -> bool:
    """Shut a worker out: none of its keys is good any more, and it counts as offline."""
    worker = await _locked(s, worker_id)
    if worker is None:
        return False
    revoked = await s.execute(
        update(WorkerApiKey)
        .where(WorkerApiKey.worker_id == worker.id, WorkerApiKey.revoked_at.is_(None))
        .values(revoked_at=func.now())
        .returning(WorkerApiKey.key_prefix)
    )
    prefixes = list(revoked.scalars())
    if prefixes or worker.revoked_at is None:
        await _shut_out(s, worker)
        await _tell(s, worker, "worker.revoked", "was shut out", actor, EventLevel.WARNING, key_prefixes=prefixes)
    return True


async def forget(s: WriteSession, worker_id: str, actor: str | None, *, alive_s: float) -> bool:
    """Delete a worker and its keys. Jobs and steps keep its name: they name it by its id, in words.

    One without keys registers itself, and while it lives it would do so again a moment later, disabled or not.
    """
    worker = await _locked(s, worker_id)
    if worker is None:
        return False
    left = worker.status is WorkerStatus.OFFLINE and worker.revoked_at is None
    if not left and await _heard_within(s, worker, alive_s) and not await _has_keys(s, worker):
        raise Refused("WORKER_ALIVE", "This worker still runs and would register itself again: stop it first.")
    await _tell(s, worker, "worker.deleted", "was deleted", actor, EventLevel.WARNING)
    await count_before_forgetting(s, [worker_id])
    await s.execute(delete(Worker).where(Worker.id == worker.id))
    return True


async def add_key(s: WriteSession, worker_id: str, key: NewKey, actor: str | None) -> bool:
    """Give a worker another key, beside those it has; a revoked worker is let in again, a disabled one is not.

    One that never had a key registers itself. With one it would pass for a machine that comes over HTTP, and plans
    would wait for it to ask there.
    """
    worker = await _locked(s, worker_id)
    if worker is None:
        return False
    if not await _has_keys(s, worker):
        raise Refused("WORKER_LOCAL", "This worker registers itself and needs no key.")
    worker.revoked_at = None
    await _keep(s, worker, key)
    await _tell(s, worker, "worker.key_added", "got a new key", actor, key_prefix=key.key_prefix)
    return True


async def revoke_key(s: WriteSession, worker_id: str, key_id: int, actor: str | None) -> bool:
    """Revoke one key; with its last one a worker is shut out. False when there is no such worker or key."""
    worker = await _locked(s, worker_id)
    if worker is None:
        return False
    found = await s.execute(
        select(WorkerApiKey).where(WorkerApiKey.id == key_id, WorkerApiKey.worker_id == worker.id).with_for_update()
    )
    key = found.scalar_one_or_none()
    if key is None:
        return False
    if key.revoked_at is None:
        key.revoked_at = await database_now(s)
        await s.flush()
        left = select(WorkerApiKey.id).where(WorkerApiKey.worker_id == worker.id, WorkerApiKey.revoked_at.is_(None))
        if (await s.execute(left.limit(1))).first() is None:
            await _shut_out(s, worker)
        level, words = EventLevel.WARNING, f"lost its key {key.key_prefix}…"
        await _tell(s, worker, "worker.key_revoked", words, actor, level, key_prefix=key.key_prefix)
    return True


def used_before() -> ColumnElement[datetime]:
    """Say before when a use is long ago: beats come often, and each would be a write."""
    return func.now() - literal(timedelta(seconds=USED_EVERY_S), Interval)


async def _locked(s: WriteSession, worker_id: str) -> Worker | None:
    if "\x00" in worker_id:
        return None
    found = await s.execute(
        select(Worker)
        .where(Worker.worker_id == worker_id)
        .with_for_update(key_share=True)
        .execution_options(populate_existing=True)
    )
    return found.scalar_one_or_none()


async def _keep(s: WriteSession, worker: Worker, key: NewKey) -> None:
    s.add(
        WorkerApiKey(
            worker_id=worker.id,
            key_hash=key.key_hash,
            hash_version=key.hash_version,
            key_prefix=key.key_prefix,
            expires_at=key.expires_at,
        )
    )
    await s.flush()


async def _shut_out(s: WriteSession, worker: Worker) -> None:
    if worker.revoked_at is None:
        worker.revoked_at = await database_now(s)
    if worker.status is not WorkerStatus.DISABLED:
        worker.status = WorkerStatus.OFFLINE
    await s.flush()


async def _has_keys(s: WriteSession, worker: Worker) -> bool:
    found = await s.execute(select(WorkerApiKey.id).where(WorkerApiKey.worker_id == worker.id).limit(1))
    return found.first() is not None


async def _heard_within(s: WriteSession, worker: Worker, seconds: float) -> bool:
    heard = worker.last_heartbeat or worker.registered_at
    return await database_now(s) - heard < timedelta(seconds=seconds)


async def _tell(
    s: WriteSession,
    worker: Worker,
    event: str,
    words: str,
    actor: str | None,
    level: EventLevel = EventLevel.INFO,
    **fields: Any,
) -> None:
    await s.flush()
    who = worker.worker_name or worker.worker_id
    about = {"worker_id": worker.worker_id, "worker_name": worker.worker_name, **fields}
    await add_event(s, Event(event, None, f"{who} {words}.", about, level, actor=actor))
    await notify(s, TOPIC_WORKERS, worker.worker_id)
