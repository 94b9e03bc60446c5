"""How long a step may wait for a GPU, and how often it asks again for anything else.

What waits for a CPU or a disk waits for as long as it takes: nobody else would do it. It asks ever more seldom, since
each time costs history and rows.
"""

from datetime import datetime, timedelta

from temporalio import workflow

from contracts.errors import StorageAway
from contracts.steps import StepFailure
from workflows import options

SHORTEST = timedelta(seconds=1)


class Patience:
    """Counts what one step has waited since it was scheduled, or last held by a worker."""

    def __init__(self, promise: options.Promise) -> None:
        self._limit = timedelta(seconds=promise.start_within_s)
        self._most = promise.waits
        self._since: datetime | None = None
        self.put_off: dict[str, int] = {}  # how often, by the code of why

    @property
    def is_long(self) -> bool:
        """Tell whether the step has been sent away so often that it may be days."""
        return sum(self.put_off.values()) > options.LONG_WAITS

    def left(self) -> timedelta | None:
        """Say how long the step may wait to be started; None: for ever."""
        if not self._limit:
            return None
        self._since = self._since or workflow.now()
        # Time passes in a pause too, and while nobody runs workflows; a limit that is over Temporal refuses for ever.
        return max(self._limit - (workflow.now() - self._since), SHORTEST)

    def renew(self) -> None:
        """Begin anew: it was held meanwhile, or taken back."""
        self._since = None
        self.put_off = {}

    def wait_s(self, told: StepFailure) -> float | None:
        """Say how long to leave a busy worker alone; None when that would be longer than the step may wait."""
        if not told.retry_after_s:  # not busy but drained
            self.renew()
            return 0.0
        before = self.put_off.get(told.code, 0)
        self.put_off = {**self.put_off, told.code: before + 1}  # anew: the one that was sent stays as it was
        if self._most and before >= self._most:
            return None
        nobody_could = told.code == StorageAway.code  # no CPU either: a GPU has its time when there is a storage again
        if nobody_could:
            self._since = None
        if nobody_could or not self._limit:
            growth = 2.0 ** min(before // options.WAITS_AS_TOLD, options.WAITS_DOUBLE)
            return max(told.retry_after_s, min(told.retry_after_s * growth, options.LONGEST_WAIT_S))
        wait = min(timedelta(seconds=told.retry_after_s), options.BUSY_SHARE * self._limit)
        left = self.left()
        assert left is not None
        return wait.total_seconds() if wait < left else None
