"""What people type is cleaned or refused, always with a code."""

import pytest

from api.errors import ApiError
from api.fields import (
    clean_description,
    clean_filename,
    clean_idempotency_key,
    clean_owner,
    clean_qualities,
    clean_search,
    clean_tier,
    clean_title,
    extension_of,
    title_from,
)
from contracts.states import Tier

LADDER = ("1080p", "720p", "360p")


def test_a_title_is_trimmed_and_composed() -> None:
    assert clean_title("  Cafe\u0301 au lait ") == "Café au lait"


def test_emoji_with_joiners_are_letters_like_others() -> None:
    assert clean_title("👨‍👩‍👧 trip") == "👨‍👩‍👧 trip"


def test_a_title_may_have_255_characters_and_no_more() -> None:
    assert len(clean_title("x" * 255)) == 255
    for length in (256, 10_000):
        with pytest.raises(ApiError) as refusal:
            clean_title("x" * length)
        assert (refusal.value.status, refusal.value.code) == (400, "TITLE_TOO_LONG")


@pytest.mark.parametrize(
    "bad", ["a\x00b", "a\x07b", "a\x1b[31mb", "a\nb", "a\u0085b", "a\u2028b", "a\u202eb", "a\ud800b"]
)
def test_control_characters_in_a_title_are_refused(bad: str) -> None:
    with pytest.raises(ApiError) as refusal:
        clean_title(bad)
    assert refusal.value.code == "TITLE_INVALID"


def test_a_description_may_have_lines_but_no_escapes() -> None:
    assert clean_description("one\r\n\ttwo ") == "one\r\n\ttwo"
    with pytest.raises(ApiError) as refusal:
        clean_description("a\x1bb")
    assert refusal.value.code == "DESCRIPTION_INVALID"
    with pytest.raises(ApiError) as refusal:
        clean_description("x" * 10_001)
    assert refusal.value.code == "DESCRIPTION_TOO_LONG"


def test_owner_tier_qualities_and_key_are_checked() -> None:
    assert clean_owner(" ana ") == "ana"
    assert clean_tier("viral") is Tier.VIRAL
    assert clean_tier("") is Tier.FREE
    assert clean_qualities(" 720p,360p 720p", LADDER) == ("720p", "360p")
    assert clean_qualities("720p-av1, 360p-hevc", LADDER) == ("720p-av1", "360p-hevc")
    assert clean_qualities("", LADDER) == ()
    assert clean_idempotency_key(None) is None
    assert clean_idempotency_key("abc-1") == "abc-1"
    assert clean_search("a\x00b") == "ab"
    for call in (
        lambda: clean_owner("a\x00"),
        lambda: clean_owner("x" * 256),
        lambda: clean_tier("gold"),
        lambda: clean_qualities("721p", LADDER),
        lambda: clean_qualities("721p-av1", LADDER),
        lambda: clean_qualities("720p-vp9", LADDER),
        lambda: clean_qualities("../etc", LADDER),
        lambda: clean_idempotency_key("x" * 256),
        lambda: clean_idempotency_key("a\tb"),
    ):
        with pytest.raises(ApiError) as refusal:
            call()
        assert refusal.value.status == 400


@pytest.mark.parametrize(
    ("sent", "kept", "extension"),
    [
        ("holiday.MP4", "holiday.MP4", ".mp4"),
        ("../../../../etc/passwd.mp4", "passwd.mp4", ".mp4"),
        ("..\\..\\windows\\x.mov", "x.mov", ".mov"),
        ("/etc/passwd", "passwd", ""),
        ("a.mp4/..", "", ""),
        ("evil.mp4\x00.sh", "evil.mp4.sh", ""),
        ("x.m3u8", "x.m3u8", ""),
        ("", "", ""),
        (None, "", ""),
        ("x" * 500 + ".mkv", "x" * 251 + ".mkv", ".mkv"),
    ],
)
def test_a_file_name_is_only_its_last_part(sent: str | None, kept: str, extension: str) -> None:
    assert clean_filename(sent) == kept
    assert extension_of(kept) == extension


def test_a_video_without_a_title_takes_the_name_of_its_file() -> None:
    assert title_from("My holiday.mp4") == "My holiday"
    assert title_from("") == "Untitled"


@pytest.mark.parametrize("invisible", ["\ufeff", "\u200b\u200d \u2060", "\u00ad"])
def test_what_nobody_can_see_is_no_title(invisible: str) -> None:
    assert clean_title(invisible) == clean_owner(invisible) == clean_description(invisible) == ""
    assert title_from(f"{invisible}.mp4") == "Untitled"
    assert clean_title(f"a{invisible}b") == f"a{invisible}b"
