"""Which rate a source has, from the times of its pictures."""

import random
from collections.abc import AsyncIterator, Iterable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from media import rates
from media.packets import PacketScan, SoundScan, scan

USUAL = [rate for rate in rates.USUAL if rate <= 120]


def scanned(times: Iterable[tuple[str, str, str]], candidates: tuple[Fraction, ...]) -> PacketScan:
    found = PacketScan(candidates)
    for words in times:
        found.see(",".join(words))
    found.close()
    return found


@given(
    st.sampled_from(USUAL),
    st.integers(1, 400),
    st.floats(0, 1000),
    st.sampled_from([1_000, 90_000, 1_000_000]),
    st.randoms(use_true_random=False),
)
def test_a_constant_rate_survives_rounding_shifting_and_reordering(
    rate: Fraction, count: int, start_s: float, clock: int, chance: random.Random
) -> None:
    times = [round((start_s + n / rate) * clock) / clock for n in range(count)]
    for at in range(0, count - 4, 4):  # as B-frames shuffle them
        chance.shuffle(group := times[at : at + 4])
        times[at : at + 4] = group
    found = scanned(((f"{time:.6f}", f"{float(1 / rate):.6f}", "K__") for time in times), (rate,))
    assert found.packets == count
    assert found.constant_rate() == rate


def test_a_dropped_picture_makes_the_rate_variable() -> None:
    times = [n / 30 for n in range(90) if n != 40]
    found = scanned(((f"{time:.6f}", "0.033333", "K__") for time in times), (Fraction(30),))
    assert found.constant_rate() is None
    assert found.steady_rate() == 30


def test_a_still_picture_of_ten_seconds_is_not_one_frame() -> None:
    found = scanned([("0.000000", "10.000000", "K__")], (Fraction(25),))
    assert found.constant_rate() is None
    assert found.end_s == 10


def test_what_an_edit_list_cuts_away_does_not_count() -> None:
    found = scanned([("-0.04", "0.04", "KD_"), ("0.0", "0.04", "___"), ("0.04", "N/A", "___")], (Fraction(25),))
    assert (found.packets, found.first_s) == (2, 0.0)
    assert found.end_s == pytest.approx(0.08)


def test_the_longest_way_between_keyframes_is_kept() -> None:
    flags = ["K__", "___", "___", "K__", "___"]
    found = scanned(((f"{n:.6f}", "1.000000", flag) for n, flag in enumerate(flags)), (Fraction(1),))
    assert found.keyframe_gap_s == 3


def test_the_longest_time_from_the_decoding_of_a_keyframe_to_its_being_shown_is_kept() -> None:
    found = PacketScan((Fraction(1),))
    for pts, dts, flag in (("0", "-0.08", "K__"), ("5", "0.04", "K__"), ("9", "1", "___"), ("6", "N/A", "K__")):
        found.see(f"{pts},1.000000,{flag}", dts)
    assert found.keyframe_lag_s == 4.96


@pytest.mark.parametrize(
    ("flags", "first_s"),
    [(["K__", "___", "K__"], 0.0), (["___", "___", "K__"], 2.0), (["KD_", "___", "K__"], 0.0), (["___"] * 3, None)],
)
def test_the_first_keyframe_is_kept_also_one_that_is_not_shown(flags: list[str], first_s: float | None) -> None:
    found = scanned(((f"{n:.6f}", "1.000000", flag) for n, flag in enumerate(flags)), (Fraction(1),))
    assert found.first_keyframe_s == first_s


def test_a_clock_that_runs_backwards_fills_no_memory() -> None:
    times = (1e6 - n * (1 + n / 7000) for n in range(5000))  # each step back is another one
    found = scanned(((f"{time:.6f}", "0.040000", "K__") for time in times), (Fraction(25),))
    assert found.packets == 5000 and found.jumps
    assert len(found._gaps) <= 65  # of the last few pictures, which are sorted


async def test_lines_may_come_in_any_pieces() -> None:
    lines = b"0,%.6f,N/A,0.040000,%d,K__\n1,%.6f,0,0.050000,N/A,K__\n2,0,0,9,1,K__\n"
    text = b"".join(lines % (n / 25, n * 100, n / 20) for n in range(50))

    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(text), 7):
            yield text[at : at + 7]

    pictures, sound, silent = PacketScan((Fraction(25),)), SoundScan(), SoundScan()
    await scan(pieces(), {0: pictures, 1: sound, 3: silent})
    assert (pictures.packets, pictures.constant_rate()) == (50, Fraction(25))
    assert (sound.packets, silent.packets) == (50, 0)
    assert sound.length_s == pytest.approx(2.5) and sound.end_s == pytest.approx(2.5)


async def test_packets_in_bytes_that_were_never_written_do_not_count() -> None:
    async def piece() -> AsyncIterator[bytes]:
        yield b"".join(b"0,%.6f,N/A,0.040000,%d,K__\n" % (n / 25, n * 100) for n in range(50))

    pictures = PacketScan((Fraction(25),))
    await scan(piece(), {0: pictures}, whole_bytes=3000)
    assert pictures.packets == 30
    assert pictures.end_s == pytest.approx(1.2)


def test_the_longest_gap_is_seen_wherever_the_wrong_time_stands() -> None:
    for wrong in (0, 30, 99):
        times = [n / 25 + (864_000 if n == wrong else 0) for n in range(100)]
        found = scanned(((f"{time:.6f}", "0.040000", "K__") for time in times), (Fraction(25),))
        assert found.longest_gap_s == pytest.approx(864_000, abs=5)
    last_stays = scanned([("0.000000", "0.04", "K__"), ("0.040000", "7200", "K__")], (Fraction(25),))
    assert last_stays.longest_gap_s == 7200


@pytest.mark.parametrize(
    ("given_rate", "expected"),
    [("29.97", "30000/1001"), ("23.976", "24000/1001"), ("24", "24"), ("59.94", "60000/1001"), ("15", "15")],
)
def test_rates_that_differ_by_rounding_are_the_usual_ones(given_rate: str, expected: str) -> None:
    assert rates.snap(Fraction(given_rate)) == Fraction(expected)


@pytest.mark.parametrize(
    ("said", "among", "not_among"),
    [("30", "30", "30000/1001"), ("30000/1001", "30000/1001", "30"), ("15", "15", "30000/1001"), ("90000", "60", "15")],
)
def test_a_variable_rate_becomes_a_usual_one_or_its_own(said: str, among: str, not_among: str) -> None:
    choices = rates.steady(said)
    assert Fraction(among) in choices and Fraction(not_among) not in choices
    assert list(choices) == sorted(choices) and choices[-1] in (60, Fraction(60000, 1001))


@given(st.lists(st.integers(0, 4000), min_size=1, max_size=200, unique=True))
def test_a_steady_rate_shows_all_but_what_no_screen_shows(milliseconds: list[int]) -> None:
    times = sorted(millisecond / 1000 for millisecond in milliseconds)
    found = scanned(((f"{time:.6f}", "0.001", "K__") for time in times), (Fraction(25),))
    rate = found.steady_rate()
    assert rate is not None

    def lost(at: Fraction) -> int:
        ticks = [int((time - times[0]) * float(at) + 0.5) for time in times]
        return len(ticks) - len(set(ticks))

    assert found.lost_at(rate) == lost(rate) <= lost(Fraction(60))
    assert all(lost(slower) > lost(Fraction(60)) for slower in found.steady if slower < rate)


def test_a_long_jitter_may_cost_one_picture_in_five_hundred() -> None:
    times = [n / 30 + (0.02 if n % 600 == 599 else 0) for n in range(1200)]
    times[600] = times[599] + 0.004
    found = scanned(((f"{time:.6f}", "0.033", "K__") for time in times), (Fraction(30),))
    assert found.constant_rate() is None
    assert found.steady_rate() == 30


@given(st.fractions(min_value="1/100", max_value=999))
def test_bounds_drop_or_repeat_whole_pictures_only(rate: Fraction) -> None:
    bounded = rates.bounded(rate)
    assert 10 <= bounded <= 60
    assert (rate / bounded).denominator == 1 or (bounded / rate).denominator == 1


@pytest.mark.parametrize("text", ["0/0", "", None, "90000/1", "nonsense", "1/0", "-25/1"])
def test_what_no_camera_makes_is_not_a_rate(text: str | None) -> None:
    assert rates.parse(text) is None
