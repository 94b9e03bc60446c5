"""Multipart forms, pushed part by part to whoever wants them.

Starlette's UploadFile would spool the whole video to a temporary file first and so write it twice.
Here the bytes of the file go on as they arrive, whether fields come before it or after it.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from api.errors import ApiError

FILE_FIELD = "file"
FIELDS_LIMIT = 32
FIELD_BYTES_LIMIT = 64 << 10  # long enough to tell a person that a title is too long, not a field


class FormReceiver(Protocol):
    """Whoever takes what a form holds, in the order in which it was sent."""

    async def field(self, name: str, value: str) -> None: ...

    async def file_begins(self, filename: str) -> None: ...

    async def file_bytes(self, chunk: bytes) -> None: ...


@dataclass(frozen=True)
class _Began:
    name: str
    filename: str | None


@dataclass(frozen=True)
class _Data:
    chunk: bytearray


@dataclass(frozen=True)
class _Ended:
    pass


def invalid(detail: str) -> ApiError:
    return ApiError(400, "MULTIPART_INVALID", detail)


def boundary_of(content_type: str | None) -> bytes:
    kind, options = parse_options_header(content_type)
    if kind != b"multipart/form-data":
        raise ApiError(415, "MULTIPART_EXPECTED", "Send a multipart form here, or the raw file with PUT.")
    boundary = options.get(b"boundary", b"")
    if not boundary:
        raise invalid("The form names no boundary.")
    return boundary


class _Parts:
    """The parser's callbacks, turned into a list that can be awaited over."""

    def __init__(self, boundary: bytes) -> None:
        self.complete = False
        self._events: list[_Began | _Data | _Ended] = []
        self._name, self._value = bytearray(), bytearray()
        self._disposition: bytes = b""
        try:
            self._parser = MultipartParser(
                boundary,
                {
                    "on_part_begin": self._on_begin,
                    "on_part_data": self._on_data,
                    "on_part_end": self._on_part_end,
                    "on_header_field": self._on_header_name,
                    "on_header_value": self._on_header_value,
                    "on_header_end": self._on_header_end,
                    "on_headers_finished": self._on_headers,
                    "on_end": self._on_end,
                },
            )
        except FormParserError as error:
            raise invalid("The form's boundary is too long.") from error

    def feed(self, chunk: bytes) -> list[_Began | _Data | _Ended]:
        self._events = []
        try:
            self._parser.write(chunk)
        except FormParserError as error:
            raise invalid("The form is not well-formed.") from error
        return self._events

    def _on_begin(self) -> None:
        self._disposition = b""

    def _on_header_name(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]

    def _on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _on_header_end(self) -> None:
        if self._name.lower() == b"content-disposition":
            self._disposition = bytes(self._value)
        self._name.clear()
        self._value.clear()

    def _on_headers(self) -> None:
        kind, options = parse_options_header(self._disposition)
        if kind != b"form-data" or b"name" not in options:
            raise invalid("A part of the form has no name.")
        filename = options.get(b"filename")
        self._events.append(_Began(_text(options[b"name"]), None if filename is None else _text(filename)))

    def _on_data(self, data: bytes, start: int, end: int) -> None:
        # Bytes that look like the start of a boundary come in tiny pieces; a hostile body is nothing
        # but such bytes. Joined here, they cost one write per chunk that arrived.
        last = self._events[-1] if self._events else None
        if isinstance(last, _Data):
            last.chunk.extend(data[start:end])
        else:
            self._events.append(_Data(bytearray(data[start:end])))

    def _on_part_end(self) -> None:
        self._events.append(_Ended())

    def _on_end(self) -> None:
        self.complete = True


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", errors="replace")


async def read_form(body: AsyncIterator[bytes], content_type: str | None, receiver: FormReceiver) -> None:
    """Push a form through `receiver`; refuse what is broken, cut short, or holds too much."""
    parts = _Parts(boundary_of(content_type))
    part: _Began | None = None
    value = bytearray()
    seen, files = 0, 0
    async for chunk in body:
        for event in parts.feed(chunk):
            if isinstance(event, _Began):
                part = event
                value.clear()
                seen += 1
                if seen > FIELDS_LIMIT:
                    raise ApiError(400, "TOO_MANY_FIELDS", f"A form has at most {FIELDS_LIMIT} fields.")
                if part.name == FILE_FIELD:
                    files += 1
                    if files > 1:
                        raise ApiError(400, "ONE_FILE_ONLY", "Send one file at a time.")
                    await receiver.file_begins(part.filename or "")
                elif part.filename is not None:
                    raise ApiError(400, "FILE_MISSING", f"The video goes in the field “{FILE_FIELD}”.")
            elif isinstance(event, _Data):
                assert part is not None
                if part.name == FILE_FIELD:
                    await receiver.file_bytes(bytes(event.chunk))
                else:
                    value += event.chunk
                    if len(value) > FIELD_BYTES_LIMIT:
                        raise ApiError(400, "FIELD_TOO_LONG", "A field of the form is too long.")
            elif part is not None and part.name != FILE_FIELD:
                try:
                    await receiver.field(part.name, value.decode("utf-8"))
                except UnicodeDecodeError as error:
                    raise invalid("A field of the form is not UTF-8.") from error
        if parts.complete:
            break
    if not parts.complete:
        raise invalid("The form ends before its closing boundary.")
    if not files:
        raise ApiError(400, "FILE_MISSING", f"The form has no field “{FILE_FIELD}”.")
