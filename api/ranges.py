"""The parts of HTTP that decide what of an object is sent: ranges and validators. Pure."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime

_ONE_RANGE = re.compile(r"bytes=\s*(\d*)-(\d*)\s*")


@dataclass(frozen=True)
class Slice:
    start: int
    length: int


class Unsatisfiable(Exception):
    """A well-formed range that lies outside the object: 416."""


def http_date(when: datetime) -> str:
    return format_datetime(when.astimezone(UTC), usegmt=True)


def quoted(etag: str) -> str:
    return f'"{etag}"'


def matches(header: str | None, etag: str) -> bool:
    """Compare If-None-Match weakly, as it asks: `*`, or any tag of the list."""
    if header is None:
        return False
    tags = (tag.strip().removeprefix("W/") for tag in header.split(","))
    return any(tag in ("*", quoted(etag)) for tag in tags)


def not_modified(if_none_match: str | None, if_modified_since: str | None, etag: str, modified_at: datetime) -> bool:
    if if_none_match is not None:
        return matches(if_none_match, etag)  # the date counts only where there is no tag
    since = _date(if_modified_since)
    return since is not None and modified_at.replace(microsecond=0) <= since


def still_same(if_range: str | None, etag: str, modified_at: datetime) -> bool:
    """Tell whether a range may be answered: If-Range names the very bytes we have, by tag or exact date."""
    if if_range is None:
        return True
    value = if_range.strip()
    if value.startswith(('"', "W/")):
        return value == quoted(etag)
    return _date(value) == modified_at.replace(microsecond=0)


def asked_slice(header: str | None, size_bytes: int) -> Slice | None:
    """Read one range; None sends the whole object, as RFC 9110 lets us for several ranges or nonsense."""
    match = _ONE_RANGE.fullmatch(header.strip()) if header is not None else None
    if match is None or len(match[1]) > 18 or len(match[2]) > 18:
        return None
    first, last = match[1], match[2]
    if not first and not last:
        return None
    if not first:
        length = min(int(last), size_bytes)
        if length == 0:
            raise Unsatisfiable
        return Slice(size_bytes - length, length)
    start = int(first)
    end = min(int(last), size_bytes - 1) if last else size_bytes - 1
    if last and int(last) < start:
        return None
    if start >= size_bytes:
        raise Unsatisfiable
    return Slice(start, end - start + 1)


def _date(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        when = parsedate_to_datetime(text)
    except ValueError:
        return None
    return when if when.tzinfo else when.replace(tzinfo=UTC)
