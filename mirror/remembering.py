"""What the recorder keeps in memory of one attempt until Postgres has it."""

import math
from dataclasses import dataclass, field

from contracts.media import SourceFacts
from contracts.plan import TranscodePlan
from contracts.steps import StepProgress
from mirror.claims import DEFAULT_HEARTBEAT_TIMEOUT_S, StepClaim
from mirror.writes_steps import StepEnd

THROTTLE_S = 0.5  # at most one write per step and this time


@dataclass
class Remembered:
    """The newest that is known of one attempt, and what of it has been written."""

    claim: StepClaim
    beat_at: float
    progress: StepProgress | None = None
    learned: list[SourceFacts | TranscodePlan] = field(default_factory=list)
    end: StepEnd | None = None
    urgent: bool = True  # a start or an end: not throttled
    fenced: bool = False  # a newer attempt or the job's end was there first: only its own end is still of interest
    refusals: int = 0
    written_at: float = -math.inf
    written_beat_at: float = -math.inf
    written_progress: StepProgress | None = None

    def due_at(self) -> float:
        if self.urgent:
            return -math.inf
        if self.fenced:
            return math.inf
        if _differs(self.progress, self.written_progress):
            return self.written_at + THROTTLE_S
        if self.beat_at > self.written_beat_at:
            timeout = self.claim.heartbeat_timeout_s
            return self.written_at + (timeout if timeout > 0 else DEFAULT_HEARTBEAT_TIMEOUT_S) / 3
        return math.inf

    def is_given_up(self, now: float) -> bool:
        """Tell whether Temporal has long taken it for lost: its worker died, or told its end to another API."""
        timeout = self.claim.heartbeat_timeout_s
        return self.end is None and self.due_at() == math.inf and 0 < timeout < (now - self.beat_at) / 2


def _differs(new: StepProgress | None, old: StepProgress | None) -> bool:
    """Tell whether there is something to see: a percent, or a segment."""
    if new is None or old is None:
        return new is not old
    segments = [(quality.quality, quality.segments_completed) for quality in new.qualities]
    if segments != [(quality.quality, quality.segments_completed) for quality in old.qualities]:
        return True
    steps = [a.percent - b.percent for a, b in zip(new.qualities, old.qualities, strict=True)]
    return any(abs(step) >= 1 for step in [new.percent - old.percent, *steps])
