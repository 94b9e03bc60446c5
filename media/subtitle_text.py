"""From the payload of one subtitle packet to WebVTT text that means nothing but its words. Pure.

Whoever made the file wrote these bytes: markup is read down to bold, italic and underline, all else is taken off or
shown as it is written, and no line can be taken for a time, a tag or the end of a cue.
"""

import re
import unicodedata
from collections.abc import Iterator

MOST_CHARACTERS = 1000  # of one cue: a screen holds a few hundred
MOST_LINES = 12
_MOST_BYTES = 1 << 16  # of one packet, marks and all

# What we can read. Pictures of text (dvd, pgs, dvb) are not text.
TEXT_CODECS = frozenset({"subrip", "srt", "text", "ass", "ssa", "mov_text", "webvtt"})

Piece = tuple[frozenset[str], str]  # styles out of b, i, u, and the words that have them

_ASS_FIELDS = 8  # ReadOrder,Layer,Style,Name,MarginL,MarginR,MarginV,Effect come before the words
# What is matched is never given back (`*+`): a mark that does not end costs no more than its length.
_ASS_BLOCK = re.compile(r"\{([^{}]*+)(?:\}|$)")
_ASS_ORDER = re.compile(r"\\(?:(?P<style>[biu])(?P<on>\d+)(?![a-z\d])|p(?P<drawing>\d+)(?![a-z\d])|(?P<reset>r))")
_TAG = re.compile(r"<(/?+)([a-z][a-z0-9]*+)?+[^<>]*+>", re.IGNORECASE)
_STYLES = {"b": "b", "strong": "b", "i": "i", "em": "i", "u": "u"}
# Marks that say how words look, not what they are; any other `<…>` in SubRip was meant to be read.
_LOOKS = frozenset({"font", "span", "c", "v", "lang", "ruby", "rt", "s", "p", "div"})
_POSITION = re.compile(r"\{\\[^{}]*+\}")  # {\an8} in SubRip, borrowed from ASS
_ENTITIES = {"&amp;": "&", "&lt;": "<", "&gt;": ">", "&nbsp;": "\u00a0", "&lrm;": "\u200e", "&rlm;": "\u200f"}
_ENTITY = re.compile("|".join(_ENTITIES))
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def cue_text(codec: str, payload: bytes) -> str:
    """Read one packet; empty when nothing is left to show."""
    if codec == "mov_text":
        payload = payload[2 : 2 + int.from_bytes(payload[:2], "big")]  # styles follow the words
    text = _decoded(payload[:_MOST_BYTES])
    match codec:
        case "ass" | "ssa":
            pieces = _ass(text)
        case "webvtt":
            pieces = ((styles, _unescaped(words)) for styles, words in _tagged(text, keep_unknown=False))
        case _:
            pieces = _tagged(_POSITION.sub("", text), keep_unknown=True)
    return _lines(pieces)


def _decoded(payload: bytes) -> str:
    if payload[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return payload.decode("utf-16", "replace")
    try:
        return payload.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if error.start >= _MOST_BYTES - 4:  # only cut in the middle of a character
            return payload.decode("utf-8-sig", "ignore")
        return payload.decode("cp1252", "replace")  # what old SubRip files are, more often than anything else


def _ass(text: str) -> Iterator[Piece]:
    fields = _ASS_FIELDS + 1 if text.startswith("Dialogue:") else _ASS_FIELDS
    words = text.split(",", fields)[-1] if text.count(",") >= fields else ""
    styles: frozenset[str] = frozenset()
    drawing = False
    for place, part in enumerate(_ASS_BLOCK.split(words)):
        if place % 2 == 0:
            if not drawing:  # the words of a drawing are coordinates
                yield styles, part.replace("\\N", "\n").replace("\\n", "\n").replace("\\h", " ")
            continue
        for order in _ASS_ORDER.finditer(part):
            if order["reset"]:
                styles = frozenset()
            elif order["drawing"]:
                drawing = order["drawing"] != "0"
            else:
                styles = styles | {order["style"]} if int(order["on"]) else styles - {order["style"]}


def _tagged(text: str, *, keep_unknown: bool) -> Iterator[Piece]:
    styles: frozenset[str] = frozenset()
    at = 0
    for tag in _TAG.finditer(text):
        name = (tag[2] or "").lower()
        style = _STYLES.get(name)
        if style is None and name not in _LOOKS and keep_unknown:
            continue
        yield styles, text[at : tag.start()]
        at = tag.end()
        if style:
            styles = styles - {style} if tag[1] else styles | {style}
    yield styles, text[at:]


def _unescaped(words: str) -> str:
    return _ENTITY.sub(lambda found: _ENTITIES[found[0]], words)


def _lines(pieces: Iterator[Piece]) -> str:
    """Lay the pieces out in lines; each line closes its own marks, and an empty one, which ends a cue, is left out."""
    lines: list[str] = []
    line: list[Piece] = []
    left = MOST_CHARACTERS

    def close() -> None:
        if "".join(words for _, words in line).strip() and len(lines) < MOST_LINES:
            lines.append("".join(_marked(*piece) for piece in line).strip())
        line.clear()

    for styles, words in pieces:
        for number, part in enumerate(re.split(r"\r\n|[\r\n\v\f\x85\u2028\u2029]", words)):
            if number:
                close()
            kept = _printable(part[: 2 * MOST_CHARACTERS])[:left]
            left -= len(kept)
            if kept:
                line.append((styles, kept))
    close()
    return "\n".join(lines)


def _printable(text: str) -> str:
    # Controls, NUL among them, halves of characters and code points that are none. Joiners and directions stay.
    return "".join(c for c in text.replace("\t", " ") if unicodedata.category(c) not in ("Cc", "Cs", "Cn"))


def _marked(styles: frozenset[str], words: str) -> str:
    marks = sorted(styles) if words.strip() else []
    opening = "".join(f"<{mark}>" for mark in marks)
    closing = "".join(f"</{mark}>" for mark in reversed(marks))
    return f"{opening}{words.translate(_ESCAPES)}{closing}"
