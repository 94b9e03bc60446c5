"""What people type about a video: cleaned, or refused with a code. Pure."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from api.errors import ApiError
from contracts.layout import KNOWN_EXTENSIONS
from contracts.plan import QUALITY_PATTERN
from contracts.states import Tier
from contracts.texts import is_unwanted
from contracts.tiers import resolve_tier

TITLE_LIMIT = 255
DESCRIPTION_LIMIT = 10_000
OWNER_LIMIT = 255
FILENAME_LIMIT = 255
KEY_LIMIT = 255
UNTITLED = "Untitled"

_LINES = frozenset("\n\r\t")


def _shows(text: str) -> str:
    """Give a text in which something can be seen, else nothing: a zero-width space is no title."""
    return text if any(not char.isspace() and unicodedata.category(char) != "Cf" for char in text) else ""


@dataclass(frozen=True)
class Details:
    """What came with an upload besides the bytes. An empty title takes the file's name."""

    title: str = ""
    description: str = ""
    owner: str = ""
    tier: Tier = Tier.FREE
    is_paid: bool = True
    qualities: tuple[str, ...] = ()

    @property
    def waits_as(self) -> Tier:
        return resolve_tier(self.tier, self.is_paid)


def clean_title(text: str) -> str:
    text = unicodedata.normalize("NFC", text).strip()
    if len(text) > TITLE_LIMIT:
        raise ApiError(400, "TITLE_TOO_LONG", f"A title has at most {TITLE_LIMIT} characters; this has {len(text)}.")
    if any(is_unwanted(char) for char in text):
        raise ApiError(400, "TITLE_INVALID", "A title may not contain control characters.")
    return _shows(text)


def clean_description(text: str) -> str:
    text = text.strip()
    if len(text) > DESCRIPTION_LIMIT:
        raise ApiError(400, "DESCRIPTION_TOO_LONG", f"A description has at most {DESCRIPTION_LIMIT} characters.")
    if any(is_unwanted(char) and char not in _LINES for char in text):
        raise ApiError(400, "DESCRIPTION_INVALID", "A description may not contain control characters.")
    return _shows(text)


def clean_owner(text: str) -> str:
    text = text.strip()
    if len(text) > OWNER_LIMIT or any(is_unwanted(char) for char in text):
        raise ApiError(400, "OWNER_INVALID", f"An owner is at most {OWNER_LIMIT} plain characters.")
    return _shows(text)


def clean_tier(text: str) -> Tier:
    try:
        return Tier(text.strip() or Tier.FREE)
    except ValueError as error:
        raise ApiError(400, "TIER_INVALID", f"A tier is one of {', '.join(Tier)}.") from error


def clean_is_paid(text: str) -> bool:
    """Read a form's yes or no; an empty field is one that was left out."""
    match text.strip().lower():
        case "" | "true" | "1" | "yes" | "on":
            return True
        case "false" | "0" | "no" | "off":
            return False
    raise ApiError(400, "IS_PAID_INVALID", "is_paid is true or false.")


def clean_qualities(text: str, ladder: Iterable[str]) -> tuple[str, ...]:
    """Read a list of rungs, separated by commas or spaces; none means the whole ladder. A codec may follow a rung."""
    names = tuple(dict.fromkeys(name for name in re.split(r"[,\s]+", text.strip()) if name))
    known = tuple(ladder)
    if any(not re.fullmatch(QUALITY_PATTERN, name) or name.split("-")[0] not in known for name in names):
        raise ApiError(
            400, "QUALITIES_INVALID", f"Qualities are some of {', '.join(known)}, or such with -hevc or -av1 behind."
        )
    return names


def clean_idempotency_key(text: str | None) -> str | None:
    if text is None or not text.strip():
        return None
    if len(text) > KEY_LIMIT or not text.isascii() or not text.isprintable():
        raise ApiError(400, "IDEMPOTENCY_KEY_INVALID", f"An Idempotency-Key is at most {KEY_LIMIT} plain characters.")
    return text.strip()


def clean_actor(text: str | None) -> str | None:
    """Shorten who somebody says they are; it is only ever shown."""
    return "".join(char for char in text or "" if not is_unwanted(char)).strip()[:OWNER_LIMIT] or None


def clean_filename(text: str | None) -> str:
    """Reduce a name to its last part. It is shown and gives the extension; it never becomes a path."""
    base = (text or "").replace("\\", "/").rsplit("/", 1)[-1]
    base = "".join(char for char in unicodedata.normalize("NFC", base) if not is_unwanted(char)).strip()
    return "" if base in (".", "..") else base[-FILENAME_LIMIT:]


def extension_of(filename: str) -> str:
    suffix = PurePosixPath(filename).suffix.lower()
    return suffix if suffix in KNOWN_EXTENSIONS else ""


def title_from(filename: str) -> str:
    return _shows(PurePosixPath(filename).stem.strip()[:TITLE_LIMIT].strip()) or UNTITLED


def clean_search(text: str) -> str:
    return "".join(char for char in text if not is_unwanted(char)).strip()
