"""Ranges and validators, as RFC 9110 reads them."""

from datetime import UTC, datetime, timedelta

import pytest

from api.ranges import Slice, Unsatisfiable, asked_slice, http_date, not_modified, still_same

WHEN = datetime(2026, 11, 16, 9, 30, 0, 123456, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, None),
        ("bytes=0-0", Slice(0, 1)),
        ("bytes=0-", Slice(0, 100)),
        ("bytes=10-19", Slice(10, 10)),
        ("bytes=90-500", Slice(90, 10)),
        ("bytes=-10", Slice(90, 10)),
        ("bytes=-500", Slice(0, 100)),
        ("bytes=5-4", None),
        ("bytes=-", None),
        ("bytes=a-b", None),
        ("bytes=0-1,3-4", None),
        ("items=0-1", None),
        ("bytes=" + "9" * 5000 + "-", None),
    ],
)
def test_one_range_is_read_and_nonsense_sends_the_whole(header: str | None, expected: Slice | None) -> None:
    assert asked_slice(header, 100) == expected


@pytest.mark.parametrize(
    ("header", "size"), [("bytes=100-", 100), ("bytes=100-200", 100), ("bytes=-0", 100), ("bytes=0-", 0)]
)
def test_a_range_outside_the_object_cannot_be_satisfied(header: str, size: int) -> None:
    with pytest.raises(Unsatisfiable):
        asked_slice(header, size)


@pytest.mark.parametrize(
    ("tag", "same"),
    [('"abc"', True), ('W/"abc"', True), ('"x", "abc"', True), ("*", True), ('"x"', False), ("", False)],
)
def test_any_tag_of_the_list_says_that_the_copy_is_current(tag: str, same: bool) -> None:
    assert not_modified(tag, http_date(WHEN), "abc", WHEN) is same


def test_without_a_tag_the_date_decides() -> None:
    assert not_modified(None, http_date(WHEN), "abc", WHEN)
    assert not not_modified(None, http_date(WHEN - timedelta(seconds=1)), "abc", WHEN)
    assert not not_modified(None, "yesterday", "abc", WHEN)
    assert not not_modified(None, None, "abc", WHEN)


def test_a_range_is_answered_only_for_the_very_same_bytes() -> None:
    assert still_same(None, "abc", WHEN)
    assert still_same('"abc"', "abc", WHEN)
    assert not still_same('W/"abc"', "abc", WHEN)
    assert not still_same('"old"', "abc", WHEN)
    assert still_same(http_date(WHEN), "abc", WHEN)
    assert not still_same(http_date(WHEN + timedelta(seconds=1)), "abc", WHEN)
