"""Which pools of this worker may take work now, by what the mirror says of it."""

import logging
from collections.abc import Sequence

from contracts.queues import Pool
from contracts.states import WorkerStanding
from workers.serving import Serving

log = logging.getLogger(__name__)


class Gate:
    """Closed until the mirror has welcomed the worker, and whenever it says otherwise; silence changes nothing."""

    def __init__(self, pools: Sequence[Pool], serving: Serving) -> None:
        self._pools, self._serving = pools, serving
        self._standing: WorkerStanding | None = None

    def heard(self, standing: WorkerStanding) -> None:
        """Take the mirror's answer; other than welcome, nothing of any kind is worked on, and the beats go on."""
        before, self._standing = self._standing, standing
        if standing is before:
            return
        if standing is WorkerStanding.WELCOME:
            if before is not None:
                log.info("welcome again: asking for work")
            self._serving.allow(self._pools)
        else:
            log.warning("this worker is %s: it asks for no more work and hands back what it has", standing)
            self._serving.allow((), f"The worker was {standing}.")
