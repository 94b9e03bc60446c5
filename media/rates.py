"""Frame rates are fractions. Which one a video gets, and why."""

from collections.abc import Iterable
from fractions import Fraction

from contracts.media import FrameRate

FASTEST = Fraction(60)
_SLOWEST = Fraction(10)  # below it a player that seeks or begins shows nothing for too long
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


def steady(text: str | None = None) -> tuple[Fraction, ...]:
    """List the constant rates that a variable one may become, the slowest first; `text` is the source's own word.

    NTSC's only when the source speaks of one: a true 30 at 29.97 loses a picture twice a minute. Its own rate too,
    for one of 15 with some pictures missing.
    """
    said = parse(text)
    own = snap(said) if said else Fraction(0)
    ntsc = own.denominator == 1001
    usual = {rate for rate in USUAL if rate <= FASTEST and (rate.denominator == 1001) == ntsc}
    return tuple(sorted(usual | ({own} if _SLOWEST <= own < max(usual) else set())))


def bounded(rate: Fraction) -> Fraction:
    """Bring a rate to 60 at most by dropping whole pictures, to 10 at least by repeating them.

    120 becomes 60, 100 becomes 50; one picture in five seconds becomes 10 a second.
    """
    if rate > FASTEST:
        return rate / -(-rate // FASTEST)
    return rate * -(-_SLOWEST // rate) if rate < _SLOWEST else rate


def candidates(texts: Iterable[str | None]) -> tuple[Fraction, ...]:
    """List the constant rates a source may have, its own word first."""
    found: list[Fraction] = []
    for rate in (parse(text) for text in texts):
        for choice in (rate and snap(rate), rate):
            if choice and choice not in found:
                found.append(choice)
    return tuple(found)
