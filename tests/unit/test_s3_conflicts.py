"""Two who create one object at a time: S3 has one word for "it is there" and one for "you met somebody"."""

import httpx
import pytest

from contracts.errors import StorageUnavailable
from storage.s3_keys import Keys
from storage.s3_multipart import Multipart
from storage.s3_partial import S3Partial, part_bytes
from storage.s3_place import S3Place
from storage.s3_writer import PART_BYTES, S3Writer, writing
from storage.store import ObjectFacts

PLACE = S3Place("media", "", "http://s3.test", "us-east-1", Keys("k", "hush"))


class Whole:
    """The object as the bucket has it afterwards."""

    def __init__(self, size_bytes: int | None) -> None:
        self._size_bytes = size_bytes

    async def put(self, data: bytes, create_only: bool) -> bool:
        raise AssertionError("it is too large for one call")

    async def size_bytes(self) -> int | None:
        return self._size_bytes


def bucket(monkeypatch: pytest.MonkeyPatch, status: int = 200) -> list[str]:
    """Be a bucket that answers the completion of an upload so; gives what it is asked."""
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.method)
        if request.method == "POST" and "uploads" in request.url.params:
            return httpx.Response(200, text="<R><UploadId>u</UploadId></R>")
        if request.method == "PUT":
            return httpx.Response(200, headers={"etag": "e"})
        if request.method == "POST":
            assert request.headers["if-none-match"] == "*"
            return httpx.Response(status, text="<Error><Code>No</Code></Error>" if status != 200 else "<R/>")
        return httpx.Response(204)

    transport = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    monkeypatch.setattr(Multipart, "opened", lambda place, patience_s: _opened(Multipart(place, transport, 0.1)))
    return asked


async def created(monkeypatch: pytest.MonkeyPatch, status: int, there: int | None) -> tuple[bool | None, list[str]]:
    """Send an object of two parts, whose completion is answered so; say what came of it, and what was asked."""
    asked = bucket(monkeypatch, status)
    async with writing(S3Writer(PLACE, "seg", "video/mp4", Whole(there), patience_s=0.1)) as writer:
        await writer.write(bytes(PART_BYTES + 1))
        try:
            return await writer.finish(create_only=True), asked
        except StorageUnavailable:
            return None, asked


class _opened:
    def __init__(self, calls: Multipart) -> None:
        self._calls = calls

    async def __aenter__(self) -> Multipart:
        return self._calls

    async def __aexit__(self, *_: object) -> None: ...


@pytest.mark.parametrize(
    ("status", "there", "outcome"),
    [
        (200, 5, True),
        (412, 5, False),  # somebody was first
        (409, 5, False),  # they met, and the other one was taken
        (409, None, None),  # they met, and neither was: it has to be sent again
    ],
)
async def test_a_part_of_a_film_is_never_taken_for_stored_that_is_not(
    monkeypatch: pytest.MonkeyPatch, status: int, there: int | None, outcome: bool | None
) -> None:
    made, asked = await created(monkeypatch, status, there)
    assert made is outcome
    assert asked.count("DELETE") == (outcome is not True), "what came second, or failed, takes its parts back"


class Notes:
    """Small objects of a bucket, of which one note is there already when it is told to be."""

    def __init__(self, first: bytes | None) -> None:
        self._note = first

    async def put_bytes(self, key: str, data: bytes, *, create_only: bool = False) -> bool:
        self._note = self._note or data
        return False

    async def read_bytes(self, key: str) -> bytes:
        assert self._note is not None
        return self._note

    async def stat(self, key: str) -> ObjectFacts | None: ...
    async def list(self, prefix: str) -> list[ObjectFacts]:
        return []

    async def delete(self, key: str) -> None: ...
    async def delete_prefix(self, prefix: str) -> None: ...


@pytest.mark.parametrize(
    ("first", "aborted"),
    [
        (b"another", 1),  # another API began it a moment ago: its upload is gone on with
        (None, 0),  # our own note, written by a call whose answer was lost: the upload it names must live
    ],
)
async def test_an_upload_that_is_begun_twice_goes_on_with_the_one_that_is_noted(
    monkeypatch: pytest.MonkeyPatch, first: bytes | None, aborted: int
) -> None:
    asked = bucket(monkeypatch)
    partial = S3Partial(Notes(first), PLACE, "uploads/1.mp4", "video/mp4", 0.1)
    await partial.write(bytes(part_bytes(1)))
    assert await partial.keep() == part_bytes(1)
    await partial.close()
    assert (asked.count("PUT"), asked.count("DELETE")) == (1, aborted)
