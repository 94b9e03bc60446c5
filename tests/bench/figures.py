"""The arithmetic: what one run cost, what a round compares, what rounds say together. Reads and starts nothing."""

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

ROUNDS = 5  # whose median a target is judged by


class Way(StrEnum):
    OURS = "a"  # through the whole service, from accepted to ready
    BY_HAND = "b"  # one process, one decode, written by a person
    ONE_BY_ONE = "c"  # a process per quality, in sequence


@dataclass(frozen=True)
class Cost:
    """What one way spent on one source."""

    wall_s: float
    ffmpeg_cpu_s: float
    other_cpu_s: float = 0.0  # API, worker, Temporal, Postgres; nothing for a bare command
    size_bytes: int = 0
    ffmpeg_mb: float = 0.0  # peak, all encoders of one moment together
    worker_mb: float = 0.0  # peak of the largest worker process, without its encoders
    api_mb: float = 0.0
    after_cpu_s: float = 0.0  # what ours does when the video is ready already: the storyboard

    @property
    def cpu_s(self) -> float:
        return self.ffmpeg_cpu_s + self.other_cpu_s

    @property
    def memory_mb(self) -> float:
        """Add up the peaks of what works on a video; they need not have been at one moment."""
        return self.ffmpeg_mb + self.worker_mb + self.api_mb

    @property
    def other_share(self) -> float:
        return self.other_cpu_s / self.cpu_s if self.cpu_s else 0.0


@dataclass(frozen=True)
class Round:
    """The three ways one after the other, so that whatever else the machine did weighs on all alike."""

    number: int
    costs: dict[Way, Cost]
    foreign_load: bool = False

    def cpu_ratio(self) -> float:
        return self.costs[Way.OURS].cpu_s / self.costs[Way.BY_HAND].cpu_s

    def wall_ratio(self) -> float:
        return self.costs[Way.OURS].wall_s / self.costs[Way.ONE_BY_ONE].wall_s

    def size_ratio(self) -> float:
        return self.costs[Way.OURS].size_bytes / self.costs[Way.BY_HAND].size_bytes

    def memory_ratio(self) -> float:
        return self.costs[Way.OURS].memory_mb / self.costs[Way.BY_HAND].memory_mb

    def other_share(self) -> float:
        return self.costs[Way.OURS].other_share


@dataclass(frozen=True)
class Spread:
    """A median with its extremes: one figure alone hides how much the machine wavered."""

    median: float
    least: float
    most: float
    count: int

    def show(self, form: str = ".3f", scale: float = 1.0, unit: str = "") -> str:
        if self.count == 1:
            return f"{self.median * scale:{form}}{unit}"
        inner = f"{self.least * scale:{form}}–{self.most * scale:{form}}"
        return f"{self.median * scale:{form}}{unit} [{inner}]"


def spread(values: Iterable[float]) -> Spread:
    """Summarise values; raises ValueError when there are none."""
    known = sorted(values)
    if not known:
        raise ValueError("no values to summarise")
    return Spread(statistics.median(known), known[0], known[-1], len(known))


def quiet(rounds: Sequence[Round]) -> list[Round]:
    """Leave out the rounds that ran beside foreign load: they are shown, never counted."""
    return [one for one in rounds if not one.foreign_load]


def over(rounds: Sequence[Round], figure: Callable[[Round], float]) -> Spread:
    """Compute a figure inside each quiet round, then summarise; never a ratio of medians."""
    return spread(figure(one) for one in quiet(rounds))


@dataclass(frozen=True)
class Verdict:
    """One target of ours, and what was measured."""

    target: str
    measured: str
    met: bool

    def __str__(self) -> str:
        return f"{'met' if self.met else '**not met**'}: {self.target}; measured {self.measured}"


def at_most(
    name: str, measured: Spread, limit: float, *, form: str = ".3f", scale: float = 1.0, unit: str = ""
) -> Verdict:
    """Judge a median against its limit."""
    target = f"{name} ≤ {limit * scale:g}{unit}"
    # Fewer rounds than the target asks for are a hint, and the page must not sell them as more.
    few = f" in {measured.count} of the {ROUNDS} rounds it takes" if measured.count < ROUNDS else ""
    return Verdict(target, measured.show(form, scale, unit) + few, measured.median <= limit)


def evenness(per_minute: Sequence[float]) -> float:
    """Tell how far the costs per minute stray from the middle of their range: 0.1 is ±10 %."""
    if not per_minute or min(per_minute) <= 0:
        raise ValueError("a cost per minute is more than nothing")
    middle = (max(per_minute) + min(per_minute)) / 2
    return (max(per_minute) - middle) / middle
