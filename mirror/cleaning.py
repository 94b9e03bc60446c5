"""Make any text fit for Postgres (no NUL, no lone surrogates) and for people (no more than 500 characters)."""

from typing import Any

from pydantic import BaseModel

from contracts.errors import SENTENCE_LIMIT

DETAIL_LIMIT = 8000  # the tail of stderr; the end says why


def clean(text: str) -> str:
    """Drop what Postgres cannot store: stderr and container tags hold any byte."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")


def sentence(text: str) -> str:
    """Cut a message for people to what `last_error` and `error_message` hold."""
    whole = clean(text).strip()
    return whole if len(whole) <= SENTENCE_LIMIT else whole[: SENTENCE_LIMIT - 1] + "…"


def tail(text: str | None) -> str | None:
    return clean(text)[-DETAIL_LIMIT:] if text else None


def jsonable(value: Any) -> Any:
    """Turn a message into plain JSON that a JSONB column accepts."""
    if isinstance(value, BaseModel):
        return jsonable(value.model_dump(mode="json"))
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(str(key)): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    return value
