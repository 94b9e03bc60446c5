"""Cues out of packets: their words, their times, and nothing that could be anything else."""

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.media import SubtitleFacts
from contracts.plan import PlannedSubtitle
from media import subtitles
from media.describe import subtitles as described
from media.subtitle_text import MOST_CHARACTERS, MOST_LINES, TEXT_CODECS, cue_text
from media.subtitles import Cue, Packet, cues, read_track, webvtt
from media.tracks import MOST_SUBTITLES, plan_audio, plan_subtitles
from tests.support.media_facts import track


def tx3g(text: str, *, after: bytes = b"") -> bytes:
    words = text.encode()
    return len(words).to_bytes(2, "big") + words + after


WORDS: dict[str, tuple[str, bytes, str]] = {
    "plain": ("subrip", b"Hello", "Hello"),
    "two lines": ("subrip", b"one\r\ntwo", "one\ntwo"),
    "styles": ("subrip", b"<I>so</I> <b>it</b> <u>is</u>", "<i>so</i> <b>it</b> <u>is</u>"),
    "a font": ("subrip", b'<font color="#ff0000">red</font>', "red"),
    "a position": ("subrip", b"{\\an8}above", "above"),
    "a style over two lines": ("subrip", b"<i>one\ntwo</i>", "<i>one</i>\n<i>two</i>"),
    "a style that never ends": ("subrip", b"<i>one", "<i>one</i>"),
    "crossed styles": ("subrip", b"<b>x<i>y</b>z</i>", "<b>x</b><b><i>y</i></b><i>z</i>"),
    "ampersand": ("subrip", b"Tom & Jerry", "Tom &amp; Jerry"),
    "a script": ("subrip", b"<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
    "an image": ("subrip", b"<img src=x onerror=alert(1)>", "&lt;img src=x onerror=alert(1)&gt;"),
    "an arrow": ("subrip", b"00:01.000 --> 00:02.000", "00:01.000 --&gt; 00:02.000"),
    "a cue in a cue": ("subrip", b"a\n\n00:05.000 --> 00:09.000\nb", "a\n00:05.000 --&gt; 00:09.000\nb"),
    "a NUL": ("subrip", b"a\0b\x07c", "abc"),
    "a file to open": ("ass", b"0,0,Default,,0,0,0,,{\\1img(file:///etc/passwd)}x", "x"),
    "latin letters": ("subrip", "café".encode("cp1252"), "café"),
    "utf-16": ("mov_text", b"\0\x06" + "hé".encode("utf-16"), "hé"),
    "only blanks": ("subrip", b" \n\t\n ", ""),
    "only marks": ("subrip", b"<i></i>\n<b> </b>", ""),
    "ass styles": ("ass", b"0,0,Default,,0,0,0,,a {\\i1}b{\\i0}, c\\Nd\\he", "a <i>b</i>, c\nd e"),
    "ass weight and reset": ("ass", b"3,0,D,,0,0,0,,{\\b700\\bord2}x{\\r}y", "<b>x</b>y"),
    "ass drawing": ("ass", b"0,0,D,,0,0,0,,{\\p1}m 0 0 l 10 0{\\p0}sign{\\pos(1,2)}", "sign"),
    "ass clip is no italic": ("ass", b"0,0,D,,0,0,0,,{\\iclip(0,0,1,1)}x", "x"),
    "ass line of a script": ("ass", b"Dialogue: 0,0:00:01.00,0:00:02.00,D,,0,0,0,,hi, you", "hi, you"),
    "ass that is none": ("ass", b"just text", ""),
    "webvtt": ("webvtt", b"<v Bob>Hi <c.red>you</c> &amp; <00:00:01.000>me &lt;3", "Hi you &amp; me &lt;3"),
    "webvtt script": ("webvtt", b"<script>x</script>", "x"),
    "webvtt escaped script": ("webvtt", b"&lt;script&gt;x", "&lt;script&gt;x"),
    "mov_text": ("mov_text", tx3g("words", after=b"\0\0\0\x16styl" + bytes(14)), "words"),
    "mov_text that lies": ("mov_text", b"\xff\xffshort", "short"),
    "mov_text of nothing": ("mov_text", b"\0\0", ""),
    "a broken tag": ("subrip", b"a < b and <i", "a &lt; b and &lt;i"),
}


@pytest.mark.parametrize("what", WORDS)
def test_words_are_read_and_nothing_else(what: str) -> None:
    codec, payload, expected = WORDS[what]
    assert cue_text(codec, payload) == expected


def test_a_huge_cue_is_cut() -> None:
    assert len(cue_text("subrip", b"x" * 1_000_000)) == MOST_CHARACTERS
    assert len(cue_text("subrip", b"<" + b"x" * 1_000_000)) == MOST_CHARACTERS + len("&lt;") - 1
    assert cue_text("subrip", "é".encode() * 1_000_000) == "é" * MOST_CHARACTERS
    assert cue_text("ass", b"0,0,D,,0,0,0,,hi{\\x" + b"(" * 1_000_000) == "hi"
    assert cue_text("subrip", b"x\n" * 100_000).count("\n") == MOST_LINES - 1


@given(st.sampled_from(sorted(TEXT_CODECS)), st.binary(max_size=400))
def test_no_bytes_can_end_a_cue_or_open_a_tag(codec: str, payload: bytes) -> None:
    text = cue_text(codec, payload)
    assert "-->" not in text and "\0" not in text and "\r" not in text
    assert all(line.strip() for line in text.split("\n")) or text == ""
    bare = text
    for mark in "biu":
        assert bare.count(f"<{mark}>") == bare.count(f"</{mark}>")
        bare = bare.replace(f"<{mark}>", "").replace(f"</{mark}>", "")
    assert "<" not in bare and ">" not in bare
    text.encode()  # no half of a character


def packet(start_s: float, duration_s: float, words: str = "words") -> Packet:
    start, duration = (Fraction(value).limit_denominator(1000) for value in (start_s, duration_s))
    return Packet(start, duration, words.encode())


def test_times_are_counted_from_the_pictures_start() -> None:
    shown = cues("subrip", [packet(13.75, 1.5, "a"), packet(16, 1, "b")], Fraction("13.724000"), 20)
    assert shown == [Cue(26, 1526, "a"), Cue(2276, 3276, "b")]


def test_what_is_never_seen_is_left_out() -> None:
    found = [packet(-3, 1), packet(-0.5, 1, "begun"), packet(9.5, 5, "cut"), packet(10, 1)]
    assert cues("subrip", found, Fraction(0), 10) == [Cue(0, 500, "begun"), Cue(9500, 10_000, "cut")]


def test_a_cue_without_an_end_lasts_to_the_next_or_five_seconds() -> None:
    shown = cues("subrip", [packet(1, 0, "a"), packet(2, 0, "b"), packet(10, 1, "c")], Fraction(0), 60)
    assert [(cue.start_ms, cue.end_ms) for cue in shown] == [(1000, 2000), (2000, 7000), (10_000, 11_000)]


def test_many_cues_at_once_cost_no_time() -> None:
    """Compared with each other, so many would take an hour."""
    crowd = [packet(1, 0, f"a{number}") for number in range(20_000)]
    assert len(cues("subrip", crowd, Fraction(0), 60)) == 20_000


def test_text_that_is_only_redrawn_is_one_cue() -> None:
    """Animated text is a cue per picture, and its outline and shadow say it again."""
    drawn = [packet(1 + number / 25, 0.04) for number in range(25)] + [packet(1, 0.04), packet(5, 1)]
    assert cues("subrip", drawn, Fraction(0), 10) == [Cue(1000, 2000, "words"), Cue(5000, 6000, "words")]


def test_the_file_says_its_times_and_words() -> None:
    text = webvtt([Cue(0, 999, "a"), Cue(3_661_001, 3_662_000, "b\nc")])
    assert text == (
        "WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:0,LOCAL:00:00:00.000\n\n"
        "00:00:00.000 --> 00:00:00.999\na\n\n01:01:01.001 --> 01:01:02.000\nb\nc\n"
    )


def test_packets_are_read_beside_their_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = PlannedSubtitle(track=3, stream=5, codec="subrip")
    assert read_track(tmp_path, wanted, "0", 10).cues == ()
    (tmp_path / "3.words").write_bytes(b"onetwothr")
    lines = ["#tb 0: 1/1000", "#codec_id 0: subrip", "0, 4200, 4200, 750, 3, 0x1", "0, 5700, 5700, 1000, 3, 0x2, S=1"]
    (tmp_path / "3.times").write_text("\n".join([*lines, "0, 9000, 9000, 10, 50, 0x3", "broken"]) + "\n")
    found = read_track(tmp_path, wanted, "3.7", 10)
    assert found.cues == (Cue(500, 1250, "one"), Cue(2000, 3000, "two"))
    assert not found.cut
    monkeypatch.setattr(subtitles, "MOST_CUES", 1)
    cut = read_track(tmp_path, wanted, "3.7", 10)
    assert cut.cut and len(cut.cues) == 1


def test_pictures_of_text_are_told_of_and_left_out() -> None:
    streams = [
        {"index": 0, "codec_type": "video", "codec_name": "h264"},
        {"index": 2, "codec_type": "subtitle", "codec_name": "hdmv_pgs_subtitle", "tags": {"language": "eng"}},
        {"index": 3, "codec_type": "subtitle", "codec_name": "subrip", "disposition": {"forced": 1, "default": 1}},
        {"index": 4, "codec_type": "subtitle"},
        {"index": 5, "codec_type": "subtitle", "codec_name": "ass", "tags": {"LANGUAGE": "../etc", "title": "a\0b"}},
    ]
    kept, told = described(streams)
    assert kept == (
        SubtitleFacts(stream=3, codec="subrip", default=True, forced=True),
        SubtitleFacts(stream=5, codec="ass", title="ab"),
    )
    [sentence] = told
    assert "1 (hdmv_pgs_subtitle, eng)" in sentence and "3 (unknown, und)" in sentence


def test_subtitles_have_names_of_their_own_and_at_most_one_default() -> None:
    tracks = (
        SubtitleFacts(stream=2, codec="ass", language="eng"),
        SubtitleFacts(stream=3, codec="ass", language="eng", default=True),
        SubtitleFacts(stream=4, codec="ass", language="eng", forced=True, default=True),
        SubtitleFacts(stream=5, codec="ass", title="English (2)"),
        SubtitleFacts(stream=6, codec="ass"),
    )
    planned, notes = plan_subtitles(tracks)
    names = ["English", "English (2)", "English (forced)", "English (2) (4)", "Subtitles 5"]
    assert [one.name for one in planned] == names
    assert [one.default for one in planned] == [False, True, False, False, False]
    assert notes == []


def test_a_thousand_tracks_are_too_many() -> None:
    planned, notes = plan_subtitles(tuple(SubtitleFacts(stream=n, codec="ass") for n in range(1000)))
    assert len(planned) == MOST_SUBTITLES
    assert notes == ["950 more subtitle tracks are left out: 50 are enough."]


def test_sounds_have_names_of_their_own() -> None:
    named = plan_audio((track(1, title="A"), track(2, title="A (3)"), track(3, title="A")), 128)
    assert [one.name for one in named] == ["A", "A (3)", "A (4)"]
