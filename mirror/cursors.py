"""Places in a list, as opaque words: the next page starts below an id, whatever was added meanwhile."""

import base64
import binascii

LARGEST_ID = 2**63 - 1


class BadCursor(ValueError):
    """The caller made this cursor up."""


def cursor_of(last_id: int) -> str:
    return base64.urlsafe_b64encode(str(last_id).encode()).decode().rstrip("=")


def id_of(cursor: str | None) -> int:
    """Read a cursor; without one, start at the newest."""
    if cursor is None:
        return LARGEST_ID
    try:
        number = int(base64.urlsafe_b64decode((cursor + "=" * (-len(cursor) % 4)).encode("ascii")).decode("ascii"))
    except (ValueError, binascii.Error) as error:
        raise BadCursor("This cursor is not one of ours.") from error
    if not 0 < number <= LARGEST_ID:
        raise BadCursor("This cursor is not one of ours.")
    return number


def is_id(number: int) -> bool:
    """Tell whether a row can have this id; Postgres answers a larger one with an error, not with nothing."""
    return 0 < number <= LARGEST_ID
