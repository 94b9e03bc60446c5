"""What a tus client says in headers: read with suspicion, or refused with a code. Pure."""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from api.errors import ApiError
from api.fields import (
    Details,
    clean_description,
    clean_filename,
    clean_is_paid,
    clean_owner,
    clean_qualities,
    clean_tier,
    clean_title,
)

VERSION = "1.0.0"
EXTENSIONS = "creation,creation-with-upload,termination,checksum,expiration"
CONTENT_TYPE = "application/offset+octet-stream"
METADATA_LIMIT = 16 << 10
PAIRS_LIMIT = 50
_NUMBER = re.compile(r"[0-9]{1,18}")
_NAME = re.compile(r"[!-+\--~]{1,200}")  # ASCII without spaces and commas


class Hash(Protocol):
    def update(self, data: bytes, /) -> None: ...

    def digest(self) -> bytes: ...


# Not for secrecy: clients choose, and the protocol asks for SHA-1.
ALGORITHMS: dict[str, Callable[[], Hash]] = {
    "sha1": lambda: hashlib.sha1(usedforsecurity=False),
    "sha256": hashlib.sha256,
    "md5": lambda: hashlib.md5(usedforsecurity=False),
}


@dataclass(frozen=True)
class Described:
    """What came with the beginning of an upload."""

    filename: str
    details: Details


class Checksum:
    """What the bytes of one request should add up to."""

    def __init__(self, algorithm: str, expected: bytes) -> None:
        self._hash, self._expected = ALGORITHMS[algorithm](), expected
        self.update = self._hash.update

    def fits(self) -> bool:
        return hmac.compare_digest(self._hash.digest(), self._expected)


def bad(code: str, detail: str) -> ApiError:
    return ApiError(400, code, detail)


def clean_number(text: str | None, header: str) -> int:
    if text is None or not _NUMBER.fullmatch(text):
        raise bad(f"{header.upper().replace('-', '_')}_INVALID", f"{header} is a whole number of bytes.")
    return int(text)


def clean_checksum(text: str | None) -> Checksum | None:
    """Read `sha1 Kq5sNclPz7QV2+lfQIuc6R7oRu0=`."""
    if text is None:
        return None
    algorithm, _, encoded = text.strip().partition(" ")
    if algorithm not in ALGORITHMS:
        raise bad("CHECKSUM_UNSUPPORTED", f"Checksums are {', '.join(ALGORITHMS)}.")
    try:
        expected = base64.b64decode(encoded.encode("ascii"), validate=True)
    except (ValueError, binascii.Error) as error:
        raise bad("UPLOAD_CHECKSUM_INVALID", "Upload-Checksum is an algorithm and a sum in Base64.") from error
    if len(expected) != len(ALGORITHMS[algorithm]().digest()):
        raise bad("UPLOAD_CHECKSUM_INVALID", f"This is no {algorithm} sum.")
    return Checksum(algorithm, expected)


def clean_metadata(text: str | None) -> dict[str, str]:
    """Read `filename aG9saWRheS5tcDQ=,is_paid`: names once each, values in Base64 and in them UTF-8."""
    found: dict[str, str] = {}
    if text is None or not text.strip():
        return found
    pairs = text.split(",")
    if len(text) > METADATA_LIMIT or len(pairs) > PAIRS_LIMIT:
        raise bad("UPLOAD_METADATA_TOO_LARGE", f"Upload-Metadata has at most {METADATA_LIMIT} letters.")
    for pair in pairs:
        name, _, encoded = pair.strip(" ").partition(" ")
        if not _NAME.fullmatch(name) or name in found:
            raise _bad_metadata()
        try:
            found[name] = base64.b64decode(encoded.encode("ascii"), validate=True).decode("utf-8")
        except ValueError as error:  # not ASCII, not Base64, not UTF-8
            raise _bad_metadata() from error
    return found


def described(metadata: dict[str, str], ladder: Iterable[str]) -> Described:
    """Take what we know out of it; what else a client tells is kept and not looked at."""

    def said(name: str) -> str:
        return metadata.get(name, "")

    details = Details(
        title=clean_title(said("title")),
        description=clean_description(said("description")),
        owner=clean_owner(said("owner")),
        tier=clean_tier(said("tier")),
        is_paid=clean_is_paid(said("is_paid")),
        qualities=clean_qualities(said("qualities"), ladder),
    )
    return Described(clean_filename(said("filename") or said("name")), details)  # Uppy says `name`


def _bad_metadata() -> ApiError:
    return bad("UPLOAD_METADATA_INVALID", "Upload-Metadata is a list of names, each once, with values in Base64.")
