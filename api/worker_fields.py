"""What is said about a worker: cleaned, or refused with a code. Pure."""

import json
import math
import unicodedata
from decimal import Decimal
from typing import Any

from api.errors import ApiError
from contracts.texts import is_unwanted

NAME_LIMIT = 100
VERSION_LIMIT = 100
REASON_LIMIT = 500
ABOUT_BYTES = 10_240  # as the columns' checks have it
ABOUT_DEPTH = 8
_LARGEST = 2**63


def clean_worker_name(text: str | None) -> str | None:
    """Take any script, but nothing that steers a terminal or hides; no name is fine too."""
    text = unicodedata.normalize("NFC", text or "").strip()
    if len(text) > NAME_LIMIT or any(is_unwanted(char) for char in text):
        raise ApiError(400, "WORKER_NAME_INVALID", f"A worker's name is at most {NAME_LIMIT} plain characters.")
    return text or None


def clean_version(text: str | None) -> str | None:
    text = (text or "").strip()
    if len(text) > VERSION_LIMIT or any(is_unwanted(char) for char in text):
        raise ApiError(400, "WORKER_VERSION_INVALID", f"A version is at most {VERSION_LIMIT} plain characters.")
    return text or None


def clean_reason(text: str) -> str:
    """Take what a worker in trouble says, whatever is in it: as one line, and not too much of it."""
    return " ".join("".join(" " if is_unwanted(char) else char for char in text).split())[:REASON_LIMIT]


def clean_about(about: dict[str, Any], what: str) -> dict[str, Any]:
    """Check `capabilities` or `metadata`: what Postgres cannot keep, or people could not read, is refused here."""
    problem, spread = _look(about, 1)
    if problem:
        raise ApiError(400, f"{what.upper()}_INVALID", f"{what}: {problem}.")
    size = len(json.dumps(about, ensure_ascii=False).encode()) + spread
    if size > ABOUT_BYTES:
        raise ApiError(400, f"{what.upper()}_TOO_LARGE", f"{what} may have {ABOUT_BYTES} bytes of JSON, not {size}.")
    return about


def _look(value: Any, depth: int) -> tuple[str | None, int]:
    """Give what is wrong in a value, and how many bytes longer than JSON Postgres writes its numbers: 1e300 in full."""
    match value:
        case str():
            bad = "\x00" in value or any("\ud800" <= char <= "\udfff" for char in value)
            return ("text with NUL or half a character" if bad else None), 0
        case bool() | None:
            return None, 0
        case int():
            return (None if -_LARGEST <= value < _LARGEST else "a number that is too large"), 0
        case float():
            if not math.isfinite(value):
                return "a number that is none", 0
            return None, max(0, len(format(Decimal(repr(value)), "f")) - len(repr(value)))
        case _ if depth > ABOUT_DEPTH:
            return f"more than {ABOUT_DEPTH} levels deep", 0
        case dict():
            inside = [*value.keys(), *value.values()]
        case _:
            inside = list(value)
    total = 0
    for each in inside:
        problem, spread = _look(each, depth + 1)
        if problem:
            return problem, 0
        total += spread
    return None, total
