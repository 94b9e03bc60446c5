"""Frame rates are fractions. Which one a video gets, and why."""

from collections.abc import Iterable
from fractions import Fraction

from contracts.media import FrameRate

FASTEST = Fraction(60)
USUAL = tuple(
    Fraction(rate)
    for rate in ("24000/1001", "24", "25", "30000/1001", "30", "48", "50", "60000/1001", "60", "120000/1001", "120")
)
# Rates that come from clocks, not from cameras: 90 kHz, milliseconds.
_ABSURD = Fraction(1000)


def parse(text: str | None) -> Fraction | None:
    """Read ffprobe's `num/den`; 0/0 and what no camera makes mean that it does not know."""
    try:
        rate = Fraction(text or "0")
    except (ValueError, ZeroDivisionError):
        return None
    return rate if 0 < rate < _ABSURD else None


def message(rate: Fraction) -> FrameRate:
    return FrameRate(num=rate.numerator, den=rate.denominator)


def snap(rate: Fraction, tolerance: float = 0.0004) -> Fraction:
    """Take a usual rate for one that differs by rounding only: 29.97 in milliseconds is 30000/1001.

    24 and 23.976 lie 0.001 apart, so the tolerance must stay well under that.
    """
    near = min(USUAL, key=lambda usual: abs(usual - rate))
    if abs(near - rate) <= near * Fraction(tolerance):
        return near
    return rate if rate.denominator <= 100_000 else rate.limit_denominator(1001)


def at_least(rate: Fraction) -> Fraction:
    """Take the usual rate that this one nearly is, else the next faster one; 60 at most."""
    usual = [choice for choice in USUAL if choice <= FASTEST]
    near = min(usual, key=lambda choice: abs(choice - rate))
    if abs(near - rate) <= near / 80:  # milliseconds make 30 look like 30.3
        return near
    # Nothing is gained by an NTSC rate that the source does not have.
    return next((choice for choice in usual if choice >= rate and choice.denominator == 1), FASTEST)


def capped(rate: Fraction) -> Fraction:
    """Bring a rate under 60 by dropping whole pictures: 120 becomes 60, 100 becomes 50."""
    return rate / -(-rate // FASTEST) if rate > FASTEST else rate


def candidates(texts: Iterable[str | None]) -> tuple[Fraction, ...]:
    """List the constant rates a source may have, its own word first."""
    found: list[Fraction] = []
    for rate in (parse(text) for text in texts):
        for choice in (rate and snap(rate), rate):
            if choice and choice not in found:
                found.append(choice)
    return tuple(found)
