"""Forms, well-made and hostile, cut at every place."""

import time
from collections.abc import AsyncIterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api.errors import ApiError
from api.multipart import FIELD_BYTES_LIMIT, FIELDS_LIMIT, boundary_of, read_form

KIND = "multipart/form-data; boundary=XX"


class Receiver:
    def __init__(self) -> None:
        self.fields: dict[str, str] = {}
        self.filename: str | None = None
        self.received = bytearray()
        self.writes = 0

    async def field(self, name: str, value: str) -> None:
        self.fields[name] = value

    async def file_begins(self, filename: str) -> None:
        self.filename = filename

    async def file_bytes(self, chunk: bytes) -> None:
        self.received += chunk
        self.writes += 1


def part(disposition: str, data: bytes, *more: str) -> bytes:
    headers = "\r\n".join((f"Content-Disposition: form-data; {disposition}", *more))
    return b"--XX\r\n" + headers.encode() + b"\r\n\r\n" + data + b"\r\n"


END = b"--XX--\r\n"


async def send(body: bytes, size: int = 65536, kind: str | None = KIND) -> Receiver:
    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(body), size):
            yield body[start : start + size]

    receiver = Receiver()
    await read_form(pieces(), kind, receiver)
    return receiver


async def refused(body: bytes, code: str, kind: str | None = KIND) -> None:
    with pytest.raises(ApiError) as refusal:
        await send(body, kind=kind)
    assert refusal.value.code == code
    assert 400 <= refusal.value.status < 500


FILE = part('name="file"; filename="a b.mp4"', b"\r\n--X\r\n--XY data", "Content-Type: video/mp4")
TITLE = part('name="title"', "Grüße".encode())


@pytest.mark.parametrize("body", [FILE + TITLE + END, TITLE + FILE + END])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 65536])
async def test_fields_may_come_before_or_after_the_file_however_the_body_is_cut(body: bytes, size: int) -> None:
    received = await send(body, size)
    assert bytes(received.received) == b"\r\n--X\r\n--XY data"
    assert received.filename == "a b.mp4"
    assert received.fields == {"title": "Grüße"}


@given(data=st.binary(max_size=300), size=st.integers(1, 400))
@settings(max_examples=100, deadline=None)
async def test_any_bytes_arrive_as_they_were_sent(data: bytes, size: int) -> None:
    if b"\r\n--XX" not in b"\r\n" + data:
        assert bytes((await send(part('name="file"; filename="x"', data) + END, size)).received) == data


@given(data=st.binary(max_size=400), size=st.integers(1, 400))
@settings(max_examples=200, deadline=None)
async def test_nonsense_is_refused_and_never_breaks_anything(data: bytes, size: int) -> None:
    for body in (data, b"--XX\r\n" + data, FILE[:-2] + data):
        try:
            await send(body, size)
        except ApiError as refusal:
            assert refusal.status == 400


async def test_a_name_in_utf8_and_a_climbing_name_pass_as_they_are_and_are_cleaned_later() -> None:
    assert (await send(part('name="file"; filename="été.mp4"', b"x") + END)).filename == "été.mp4"
    assert (await send(part('name="file"; filename="../../x"', b"x") + END)).filename == "../../x"


async def test_a_form_without_a_file_is_refused() -> None:
    await refused(TITLE + END, "FILE_MISSING")
    await refused(part('name="video"; filename="a.mp4"', b"x") + END, "FILE_MISSING")


async def test_two_files_are_refused() -> None:
    await refused(FILE + FILE + END, "ONE_FILE_ONLY")


async def test_a_form_that_is_cut_short_is_refused() -> None:
    await refused(FILE, "MULTIPART_INVALID")
    await refused(FILE[:-10], "MULTIPART_INVALID")
    await refused(b"", "MULTIPART_INVALID")


async def test_too_many_or_too_long_fields_are_refused() -> None:
    await refused(part('name="x"', b"") * (FIELDS_LIMIT + 1) + FILE + END, "TOO_MANY_FIELDS")
    await refused(part('name="x"', b"y" * (FIELD_BYTES_LIMIT + 1)) + END, "FIELD_TOO_LONG")


async def test_too_many_or_too_long_headers_are_refused() -> None:
    await refused(part('name="file"', b"x", *(f"X-{n}: 1" for n in range(100))) + END, "MULTIPART_INVALID")
    await refused(part('name="file"', b"x", "X: " + "y" * 100_000) + END, "MULTIPART_INVALID")


async def test_a_part_without_a_name_and_a_field_that_is_not_text_are_refused() -> None:
    await refused(part('filename="a.mp4"', b"x") + END, "MULTIPART_INVALID")
    await refused(b"--XX\r\nX: y\r\n\r\nz\r\n" + END, "MULTIPART_INVALID")
    await refused(part('name="title"', b"\xff\xfe") + FILE + END, "MULTIPART_INVALID")


async def test_another_kind_of_body_or_no_boundary_is_refused() -> None:
    await refused(b"{}", "MULTIPART_EXPECTED", "application/json")
    await refused(b"{}", "MULTIPART_EXPECTED", None)
    await refused(FILE + END, "MULTIPART_INVALID", "multipart/form-data")
    await refused(FILE + END, "MULTIPART_INVALID", "multipart/form-data; boundary=" + "X" * 300)
    assert boundary_of('multipart/form-data; boundary="a b"') == b"a b"


async def test_bytes_that_look_like_boundaries_cost_one_write_per_chunk() -> None:
    data = b"\r\n--X" * 200_000
    started = time.perf_counter()
    received = await send(part('name="file"; filename="x"', data) + END)
    assert bytes(received.received) == data
    assert received.writes <= len(data) // 65536 + 2
    assert time.perf_counter() - started < 10
