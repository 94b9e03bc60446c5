"""Whose keys were good while Postgres could tell. Asked only while it cannot: remote steps go on, as local ones do.

Nobody is revoked or disabled while Postgres is away, for that is written there. What may be missed is what was written
in the moment between a worker's last call and the outage; so only who spoke shortly before it is remembered.
"""

import time
from collections import OrderedDict
from typing import Generic, TypeVar

T = TypeVar("T")

LATELY_S = 60.0  # before Postgres was last heard of: two heartbeats
LONGEST_S = 3600.0  # then a worker waits for Postgres after all
PAUSE_S = 1.0  # after it did not answer
MOST = 10_000


class KnownKeys(Generic[T]):
    """One per API process. It has hashes only, as Postgres does."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[float, T]] = OrderedDict()
        self._answered_at = 0.0
        self._ask_again_at = 0.0

    @property
    def is_database_away(self) -> bool:
        return time.monotonic() < self._ask_again_at

    def database_away(self) -> None:
        if not self.is_database_away:
            self._ask_again_at = time.monotonic() + PAUSE_S

    def forget(self, key_hash: str) -> None:
        """Note that Postgres was asked about a key, and that it is good for nothing until it is let in."""
        self._answered_at = time.monotonic()
        self._known.pop(key_hash, None)

    def let_in(self, key_hash: str, caller: T) -> None:
        self._answered_at = time.monotonic()
        self._known[key_hash] = (self._answered_at, caller)
        while len(self._known) > MOST:
            self._known.popitem(last=False)

    def recall(self, key_hash: str) -> T | None:
        at, caller = self._known.get(key_hash, (float("-inf"), None))
        is_fresh = self._answered_at - at <= LATELY_S and time.monotonic() - at <= LONGEST_S
        return caller if is_fresh else None
