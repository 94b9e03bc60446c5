"""Addresses made of titles. Once given, a slug never changes and is never given again."""

import re
import unicodedata

LIMIT = 80


def slug_of(title: str) -> str:
    """Spell a title in letters that need no escaping anywhere; `video` when nothing is left."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain)[:LIMIT].strip("-") or "video"


def free_slug(base: str, taken: set[str]) -> str:
    """Add -2, -3, … to a slug until it is free."""
    candidate, number = base, 1
    while candidate in taken:
        number += 1
        candidate = f"{base}-{number}"
    return candidate
