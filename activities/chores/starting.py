"""What was committed and not started: an API died, or Temporal was away, between the two."""

from temporalio import activity

from contracts.housekeeping import ChoreDone, KeepHouse
from mirror.outbox import Outbox


class StartingChore:
    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox

    @activity.defn
    async def start_left_over(self, request: KeepHouse) -> ChoreDone:
        """Start jobs that have no workflow yet.

        Safe to repeat: a workflow's id names its job, so a second start is the first one. Beside an upload that is
        about to start its own job: jobs of the last seconds are left to it, and both starting is one start.
        """
        return ChoreDone(count=await self._outbox.start_left_over())
