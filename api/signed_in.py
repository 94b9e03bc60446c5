"""Sessions: what the cookie says, and which of them are over before their time.

The cookie is a name and a note that we signed for it. The name stays when the note is renewed, so that whatever was
opened by it, a stream above all, is known to belong together; it is no secret, for without its note it opens nothing.
"""

import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from api.signing import Keys

LASTS_S = 7 * 24 * 3600
REMEMBERED = 10_000  # sessions that are over; the oldest is forgotten first
_ID = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True)
class SignedIn:
    """Somebody who knew the secret, in one browser."""

    id: str
    expires_at: int

    @classmethod
    def anew(cls, name: str | None = None) -> Self:
        """Begin a session, or give one another week."""
        return cls(name or secrets.token_hex(8), int(time.time()) + LASTS_S)

    def cookie(self, keys: Keys) -> str:
        return f"{self.id}.{keys.sign('session', self.id, self.expires_at)}"

    @classmethod
    def read(cls, cookie: str, keys: Keys) -> Self | None:
        """Believe what we wrote and what is not over; None for all else."""
        name, _, note = cookie.partition(".")
        if not _ID.fullmatch(name):
            return None
        expires_at = keys.expiry("session", name, note, time.time())
        return None if expires_at is None else cls(name, expires_at)


class SignedOut:
    """Sessions that somebody left, as far as this process has heard of it: their cookies open nothing here any more.

    Not stored: a copy of a cookie that was kept is good again when every process has been restarted, until its week is
    over. Another secret ends them all.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left: OrderedDict[str, float] = OrderedDict()

    def add(self, name: str) -> None:
        now = self._clock()
        self._left[name] = now + LASTS_S
        self._left.move_to_end(name)
        while len(self._left) > REMEMBERED or next(iter(self._left.values())) <= now:
            self._left.popitem(last=False)

    def __contains__(self, name: str) -> bool:
        return name in self._left
