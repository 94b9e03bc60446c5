"""Which pools of this worker may take work now: by what the mirror says of it, and by what it knows of itself."""

import logging
from collections.abc import Mapping, Sequence

from contracts.queues import Pool
from contracts.states import WorkerStanding
from workers.serving import Serving

log = logging.getLogger(__name__)


class Gate:
    """Closed until the mirror has welcomed the worker, and whenever it says otherwise; silence changes nothing."""

    def __init__(self, pools: Sequence[Pool], serving: Serving) -> None:
        self._pools, self._serving = pools, serving
        self._standing: WorkerStanding | None = None
        self._aside: Mapping[Pool, str] = {}

    def heard(self, standing: WorkerStanding) -> None:
        """Take the mirror's answer; other than welcome, nothing of any kind is worked on, and the beats go on."""
        before, self._standing = self._standing, standing
        if standing is before:
            return
        if standing is not WorkerStanding.WELCOME:
            log.warning("this worker is %s: it asks for no more work and hands back what it has", standing)
        elif before is not None:
            log.info("welcome again: asking for work")
        self._decide()

    def set_aside(self, pools: Mapping[Pool, str]) -> None:
        """Take the pools that this worker finds itself unfit for, each with a sentence that says why."""
        self._aside = dict(pools)
        self._decide()

    def _decide(self) -> None:
        if self._standing is None:
            return
        if self._standing is WorkerStanding.WELCOME:
            why = next(iter(self._aside.values()), "")
            self._serving.allow([pool for pool in self._pools if pool not in self._aside], why)
        else:
            self._serving.allow((), f"The worker was {self._standing}.")
