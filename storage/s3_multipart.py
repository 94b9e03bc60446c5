"""S3's multipart uploads, call by call: obstore can neither abort one, nor complete it create-only, nor list them."""

import asyncio
import functools
import hashlib
import random
import ssl
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self
from xml.etree import ElementTree
from xml.sax.saxutils import escape

import httpx

from contracts.errors import StorageUnavailable
from storage.s3_place import S3Place
from storage.s3_signing import query_string, signed_headers

TIMEOUT = httpx.Timeout(60, connect=5)
BUSY = frozenset({408, 429, 500, 502, 503, 504})
# Said with other statuses, too: a line that stood still for too long is a 400, and Amazon may say 200 to a completion
# first and think better of it afterwards.
BUSY_CODES = frozenset({"InternalError", "RequestTimeout", "ServiceUnavailable", "SlowDown"})
FIRST_WAIT_S, LONGEST_WAIT_S = 0.2, 5.0
LEAST_TRIES = 3


@dataclass(frozen=True)
class Unfinished:
    """An upload that was begun and neither completed nor aborted; the key is the bucket's."""

    full_key: str
    upload_id: str
    begun_at: datetime


@dataclass(frozen=True)
class Part:
    etag: str
    size_bytes: int
    written_at: datetime


class Refused(Exception):
    """The server understood, and said no."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(f"{status} {code}")
        self.status, self.code = status, code


@functools.cache
def _trusted() -> ssl.SSLContext:
    return ssl.create_default_context()  # reads a few hundred certificates: once is enough


class Multipart:
    """The calls, over one connection pool; keys are the bucket's."""

    def __init__(self, place: S3Place, http: httpx.AsyncClient, patience_s: float) -> None:
        self._place, self._http, self._patience_s = place, http, patience_s

    @classmethod
    @asynccontextmanager
    async def opened(cls, place: S3Place, patience_s: float) -> AsyncIterator[Self]:
        async with httpx.AsyncClient(timeout=TIMEOUT, verify=_trusted(), trust_env=False) as http:
            yield cls(place, http, patience_s)

    async def begin(self, key: str, content_type: str) -> str:
        answer = await self._ask("POST", key, {"uploads": ""}, headers={"content-type": content_type})
        return _text(_xml(answer), "UploadId")

    async def put_part(self, key: str, upload_id: str, number: int, data: bytes) -> str:
        """Store one part and give its tag; the server compares the checksum that is signed with it."""
        query = {"partNumber": str(number), "uploadId": upload_id}
        answer = await self._ask("PUT", key, query, body=data)
        return answer.headers["etag"]

    async def complete(self, key: str, upload_id: str, etags: Mapping[int, str], *, create_only: bool) -> bool:
        """Make the parts one object; False when `create_only` and somebody was first."""
        parts = "".join(
            f"<Part><PartNumber>{number}</PartNumber><ETag>{escape(etags[number])}</ETag></Part>"
            for number in sorted(etags)
        )
        body = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()
        headers = {"if-none-match": "*"} if create_only else {}
        try:
            await self._ask("POST", key, {"uploadId": upload_id}, body=body, headers=headers)
        except Refused as refused:
            if create_only and refused.status == 412:
                return False
            raise  # 409: it met another, and perhaps neither was taken
        return True

    async def abort(self, key: str, upload_id: str) -> None:
        try:
            await self._ask("DELETE", key, {"uploadId": upload_id})
        except Refused as refused:
            if refused.status != 404:  # gone already
                raise

    async def unfinished(self, prefix: str) -> list[Unfinished]:
        found: list[Unfinished] = []
        query = {"uploads": "", "prefix": prefix}
        while True:
            root = _xml(await self._ask("GET", "", query))
            for each in root:
                if _name(each) == "Upload":
                    begun_at = _time(_text(each, "Initiated"))
                    found.append(Unfinished(_text(each, "Key"), _text(each, "UploadId"), begun_at))
            if _text(root, "IsTruncated") != "true":
                # Not every server heeds the prefix to the letter.
                return [upload for upload in found if upload.full_key.startswith(prefix)]
            query |= {
                "key-marker": _text(root, "NextKeyMarker"),
                "upload-id-marker": _text(root, "NextUploadIdMarker"),
            }

    async def last_written_at(self, upload: Unfinished) -> datetime:
        """Say when the newest part came, or the upload began."""
        try:
            parts = await self.parts(upload.full_key, upload.upload_id)
        except Refused as refused:
            if refused.status != 404:
                raise
            parts = {}
        return max([upload.begun_at, *(part.written_at for part in parts.values())])

    async def parts(self, key: str, upload_id: str) -> dict[int, Part]:
        """Say which parts of an upload are there, by their numbers."""
        found: dict[int, Part] = {}
        query = {"uploadId": upload_id}
        while True:
            root = _xml(await self._ask("GET", key, query))
            for each in root:
                if _name(each) == "Part":
                    written_at = _time(_text(each, "LastModified"))
                    number, size = int(_text(each, "PartNumber")), int(_text(each, "Size"))
                    found[number] = Part(_text(each, "ETag"), size, written_at)
            if _text(root, "IsTruncated") != "true":
                return found
            query["part-number-marker"] = _text(root, "NextPartNumberMarker")

    async def _ask(
        self,
        method: str,
        key: str,
        query: Mapping[str, str],
        *,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Send one request, again while the server is away or busy and our patience lasts.

        Patience counts from the first failure on: a part that was long on its way is worth another try.
        """
        url = f"{self._place.url(key)}?{query_string(query)}"
        checksum = await asyncio.to_thread(lambda: hashlib.sha256(body).hexdigest())
        give_up_at: float | None = None
        tries, wait_s = 0, FIRST_WAIT_S
        while True:
            keys = await self._place.keys.now()
            now = datetime.now(UTC)
            signed = signed_headers(keys, self._place.region, method, url, headers or {}, checksum, now)
            try:
                answer = await self._http.request(method, url, content=body, headers=signed)
            except httpx.HTTPError as error:
                said = type(error).__name__
            else:
                if answer.is_success and not (method == "POST" and _name(_xml(answer)) == "Error"):
                    return answer
                code = _code(answer)
                if answer.status_code not in BUSY and code not in BUSY_CODES:
                    raise Refused(answer.status_code, code)
                said = f"{answer.status_code} {code}"
            tries += 1
            give_up_at = give_up_at or time.monotonic() + self._patience_s
            if tries >= LEAST_TRIES and time.monotonic() + wait_s > give_up_at:
                raise StorageUnavailable("Storage did not answer.", detail=f"{method} {key}: {said}")
            await asyncio.sleep(wait_s * random.uniform(0.5, 1))
            wait_s = min(LONGEST_WAIT_S, 2 * wait_s)


def _xml(answer: httpx.Response) -> ElementTree.Element:
    try:
        return ElementTree.fromstring(answer.content.lstrip())  # blanks keep the line alive while parts are joined
    except ElementTree.ParseError as error:
        raise StorageUnavailable("Storage answered something that is not S3's language.") from error


def _name(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]  # servers disagree about the namespace


def _text(element: ElementTree.Element, name: str) -> str:
    return next((child.text or "" for child in element if _name(child) == name), "")


def _code(answer: httpx.Response) -> str:
    try:
        return _text(ElementTree.fromstring(answer.content.lstrip()), "Code")
    except ElementTree.ParseError:
        return ""


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
