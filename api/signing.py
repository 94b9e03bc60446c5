"""Notes that we sign and later believe, until they expire: a session, a link. Nothing is stored for them.

Their key is made of the admin secret, slowly: whoever holds a note could otherwise try out secrets at home, millions a
second. Another secret makes every note void.
"""

import base64
import hashlib
import hmac
import re
from functools import cached_property

_NOTE = re.compile(r"([0-9a-f]{1,11})-([A-Za-z0-9_-]{43})")  # when it ends, and who says so
_SALT = b"vlog notes, version 1"


class Keys:
    """The keys of one secret, one per purpose: a link is no session."""

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()

    @cached_property
    def _root(self) -> bytes:
        # 16 MB and some 50 ms, once per process.
        return hashlib.scrypt(self._secret, salt=_SALT, n=1 << 14, r=8, p=1)

    def sign(self, purpose: str, subject: str, expires_at: int) -> str:
        """Write a note; its letters need no escaping in a cookie or in a path."""
        ends = f"{expires_at:x}"
        mac = hmac.digest(self._root, "\0".join((purpose, subject, ends)).encode(), "sha256")
        return f"{ends}-{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"

    def expiry(self, purpose: str, subject: str, note: str, now: float) -> int | None:
        """Say until when a note holds; None for one that is over, or that we never wrote for this."""
        read = _NOTE.fullmatch(note)
        if read is None or (ends := int(read[1], 16)) <= now:
            return None
        # A note has one spelling: what was sent is compared with what we would write.
        return ends if hmac.compare_digest(note, self.sign(purpose, subject, ends)) else None
