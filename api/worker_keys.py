"""The keys of workers: made once, shown once, kept as a hash. Pure.

A plain SHA-256 is right here, and a slow hash would be wrong. Slow hashes make up for words that people choose; a key
is 256 random bits, which nobody guesses at any speed. And a hash that costs a tenth of a second, at a route that
anybody can call, lets anybody keep the API busy.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from datetime import datetime

from mirror.registry import NewKey
from mirror.views_workers import StoredKey

KEY_BYTES = 32
PREFIX_LENGTH = 8  # stored as it is, to find the key by; 48 of its bits, so that 208 stay secret
HASH_VERSION = 1
_SHAPE = re.compile(r"[A-Za-z0-9_-]{32,128}")


def make_key() -> str:
    return secrets.token_urlsafe(KEY_BYTES)


def kept(key: str, expires_at: datetime | None = None) -> NewKey:
    """Give what is stored of a key."""
    return NewKey(hashed(key), HASH_VERSION, key[:PREFIX_LENGTH], expires_at)


def prefix_of(said: str) -> str | None:
    """Give what to look a key up by, or None for what cannot be one: that costs neither a hash nor a query."""
    return said[:PREFIX_LENGTH] if _SHAPE.fullmatch(said) else None


def matching(key_hash: str, candidates: Iterable[StoredKey]) -> StoredKey | None:
    """Find the key that was said. Each is compared in constant time: its hash cannot be felt out byte by byte."""
    found = None
    for key in candidates:
        if key.hash_version == HASH_VERSION and hmac.compare_digest(key_hash, key.key_hash):
            found = key
    return found


def hashed(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()
