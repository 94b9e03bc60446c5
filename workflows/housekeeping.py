"""Keeping house: every chore once, one after the other; one that fails stops no other.

A Temporal schedule starts it, so that one runs at a time however many processes there are.
"""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from activities.chores.claims import ClaimsChore
    from activities.chores.counting import CountingChore
    from activities.chores.deliveries import DeliveriesChore
    from activities.chores.drift import DriftChore
    from activities.chores.outputs import OutputsChore
    from activities.chores.purging import PurgingChore
    from activities.chores.scratch import ScratchChore
    from activities.chores.starting import StartingChore
    from activities.chores.uploads import UploadsChore
    from activities.chores.workers import WorkersChore
    from contracts.housekeeping import ChoreDone, KeepHouse, KeptHouse
    from contracts.queues import TaskQueue

# In the order in which people would miss them.
CHORES: tuple[Callable[[Any, KeepHouse], Awaitable[ChoreDone]], ...] = (
    StartingChore.start_left_over,
    DriftChore.mend_drift,
    ClaimsChore.release_expired_claims,
    WorkersChore.mark_silent_workers,
    DeliveriesChore.carry_deliveries,
    ScratchChore.remove_scratch,
    UploadsChore.remove_expired_uploads,
    OutputsChore.remove_outputs,
    PurgingChore.purge_videos,
    CountingChore.count_events,
)
# Each works in batches that take a second; the next run goes on. A minute means that a neighbour is away.
LIMIT = timedelta(seconds=60)


@workflow.defn
class Housekeeping:
    @workflow.run
    async def run(self, request: KeepHouse) -> KeptHouse:
        done, failed = {}, {}
        for chore in CHORES:
            try:
                result = await workflow.execute_activity_method(
                    chore,
                    request,
                    task_queue=TaskQueue.ORCHESTRATE,
                    schedule_to_close_timeout=LIMIT,
                    # The next run is the next try.
                    retry_policy=RetryPolicy(maximum_attempts=1),
                )
            except ActivityError as error:
                failed[chore.__name__] = str(error.cause or error)
            else:
                if result.count:
                    done[chore.__name__] = result.count
        return KeptHouse(done=done, failed=failed)
