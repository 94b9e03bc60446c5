"""Who is killed when: drawn once from a seed, so that a run can be repeated."""

import random
from dataclasses import dataclass
from signal import SIGKILL, SIGTERM, Signals

# `up` gives up on a child that dies five times in a minute, and is right to: that is no accident any more.
MOST_PER_MINUTE = 3


@dataclass(frozen=True)
class Blow:
    after_s: float  # since the one before
    victim: str  # a child of `up`, by the name it reports
    signal: Signals


def draw(seed: str, blows: int, victims: tuple[str, ...], between_s: tuple[float, float]) -> list[Blow]:
    """Choose moments, victims and manners; one in five is asked politely."""
    dice = random.Random(seed)
    clock, struck, drawn = 0.0, dict[str, list[float]](), list[Blow]()
    while len(drawn) < blows:
        wait = dice.uniform(*between_s)
        clock += wait
        tired = {name for name, at in struck.items() if sum(clock - then < 60 for then in at) >= MOST_PER_MINUTE}
        victim = dice.choice([name for name in victims if name not in tired])
        struck.setdefault(victim, []).append(clock)
        drawn.append(Blow(wait, victim, SIGTERM if dice.random() < 0.2 else SIGKILL))
    return drawn
