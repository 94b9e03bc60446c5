"""How long a step may wait for a GPU. What waits for a CPU waits for as long as it takes: nobody else would do it."""

from datetime import datetime, timedelta

from temporalio import workflow

from contracts.steps import StepFailure
from workflows import options

SHORTEST = timedelta(seconds=1)


class Patience:
    """Counts what one step has waited since it was scheduled, or last held by a worker."""

    def __init__(self, promise: options.Promise) -> None:
        self._limit = timedelta(seconds=promise.start_within_s)
        self._since: datetime | None = None

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

    def wait_s(self, told: StepFailure) -> float | None:
        """Say how long to leave a busy worker alone; None when that would be longer than the step may wait."""
        if not told.retry_after_s:  # not busy but drained
            self.renew()
        if not self._limit or not told.retry_after_s:
            return told.retry_after_s
        wait = min(timedelta(seconds=told.retry_after_s), options.BUSY_SHARE * self._limit)
        left = self.left()
        assert left is not None
        return wait.total_seconds() if wait < left else None
