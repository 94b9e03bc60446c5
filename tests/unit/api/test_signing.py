"""Signed notes and guessed secrets: what is believed, for how long, and from whom."""

from typing import Any

import pytest
from fastapi import Request
from hypothesis import given
from hypothesis import strategies as st

from api.errors import ApiError
from api.guessing import ADDRESSES, BURST, EVERY_S, Guesses
from api.signing import Keys

KEYS = Keys("secret")
NOTE = KEYS.sign("session", "admin", 2000)


def test_a_note_holds_until_it_ends_for_its_purpose_subject_and_secret() -> None:
    assert KEYS.expiry("session", "admin", NOTE, 1999.9) == 2000
    assert Keys("secret").expiry("session", "admin", NOTE, 0) == 2000  # another process
    assert KEYS.expiry("session", "admin", NOTE, 2000) is None
    assert KEYS.expiry("link", "admin", NOTE, 0) is None
    assert KEYS.expiry("session", "somebody", NOTE, 0) is None
    assert Keys("Secret").expiry("session", "admin", NOTE, 0) is None


@given(st.one_of(st.text(), st.integers(0, len(NOTE) - 1).map(lambda at: NOTE[:at] + "x" + NOTE[at + 1 :])))
def test_no_other_spelling_is_a_note(note: str) -> None:
    assert KEYS.expiry("session", "admin", note, 0) is None


def test_a_note_cannot_be_given_more_time() -> None:
    later = f"{3000:x}" + NOTE[NOTE.index("-") :]
    assert KEYS.expiry("session", "admin", later, 0) is None
    assert KEYS.expiry("session", "admin", "0" + NOTE, 0) is None


def asking(host: str | None) -> Request:
    scope: dict[str, Any] = {"type": "http", "headers": [], "client": (host, 1) if host else None}
    return Request(scope)


def test_ten_wrong_guesses_at_once_and_then_one_every_six_seconds() -> None:
    now = 1000.0
    guesses = Guesses(lambda: now)
    me, neighbour = asking("192.0.2.1"), asking("192.0.2.2")
    for _ in range(BURST):
        guesses.refuse_if_many(me)
        guesses.wrong(me)
    with pytest.raises(ApiError) as refused:
        guesses.refuse_if_many(me)
    assert (refused.value.status, refused.value.headers["Retry-After"]) == (429, "6")
    guesses.refuse_if_many(neighbour)
    now += EVERY_S
    guesses.refuse_if_many(me)
    guesses.wrong(me)
    with pytest.raises(ApiError):
        guesses.refuse_if_many(me)


def test_a_household_is_one_guesser_and_memory_is_bounded() -> None:
    guesses = Guesses(lambda: 0.0)
    for number in range(BURST):
        guesses.wrong(asking(f"2001:db8::{number:x}"))
    with pytest.raises(ApiError):
        guesses.refuse_if_many(asking("2001:db8::ffff"))
    guesses.refuse_if_many(asking("2001:db8:0:1::1"))
    guesses.refuse_if_many(asking(None))
    for number in range(ADDRESSES + 5):
        guesses.wrong(asking(f"10.0.{number // 256}.{number % 256}"))
    assert len(guesses._free_at) == ADDRESSES
