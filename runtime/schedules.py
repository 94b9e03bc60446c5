"""The schedule that housekeeping runs on. Any number of processes may ensure it at once: there is one.

Traps that were fallen into (TEMPORAL-PATTERNS.md, section 4): without an execution timeout a run that no worker
takes holds up all later ones; an update that does not copy the state undoes a person's pause.
"""

import asyncio
from datetime import timedelta

import structlog
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
    ScheduleUpdate,
    ScheduleUpdateInput,
)
from temporalio.service import RPCError

from contracts.housekeeping import HOUSEKEEPING, KeepHouse
from contracts.queues import TaskQueue
from runtime.temporal import (
    RPC_TIMEOUT,
    SEARCH_ATTRIBUTES,
    ensure_search_attributes,
    retention_of,
    too_forgetful,
)

log = structlog.get_logger(__name__)

WORKFLOW = "Housekeeping"  # by name: runtime knows no workflow
JITTER = 0.1
SHORTEST_CATCH_UP = timedelta(seconds=10)  # Temporal's own minimum
SHORTEST_RUN = timedelta(minutes=5)
LOOK_EVERY_S = 20.0


def housekeeping(every_s: float) -> Schedule:
    """Describe the schedule: every so often, give or take a tenth, one at a time."""
    every = timedelta(seconds=every_s)
    return Schedule(
        action=ScheduleActionStartWorkflow(
            WORKFLOW,
            KeepHouse(),
            id=HOUSEKEEPING,
            task_queue=TaskQueue.ORCHESTRATE,
            execution_timeout=max(3 * every, SHORTEST_RUN),
        ),
        spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=every)], jitter=every * JITTER),
        policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.SKIP, catchup_window=max(every, SHORTEST_CATCH_UP)),
    )


async def ensure_housekeeping(client: Client, every_s: float, *, update: bool = True) -> bool:
    """Create the schedule, or bring an older one up to date; True when this changed anything.

    Without `update` an existing one is left as it is: two processes with different settings would otherwise change
    it back and forth for ever.
    """
    wanted = housekeeping(every_s)
    try:
        await client.create_schedule(HOUSEKEEPING, wanted, rpc_timeout=RPC_TIMEOUT)
        return True
    except ScheduleAlreadyRunningError:
        pass
    if not update:
        return False
    changed = False

    async def bring_up_to_date(found: ScheduleUpdateInput) -> ScheduleUpdate | None:
        nonlocal changed
        current = found.description.schedule
        if _facts(current) == _facts(wanted):
            return None
        changed = True
        # The state is theirs: a person may have paused it, and said why.
        return ScheduleUpdate(Schedule(wanted.action, wanted.spec, wanted.policy, current.state))

    await client.get_schedule_handle(HOUSEKEEPING).update(bring_up_to_date, rpc_timeout=RPC_TIMEOUT)
    return changed


def _facts(schedule: Schedule) -> tuple[object, ...]:
    """Reduce a schedule to what we set. Its argument is empty and always the same."""
    action = schedule.action
    assert isinstance(action, ScheduleActionStartWorkflow)
    return (
        *(action.workflow, action.task_queue, action.execution_timeout),
        *([interval.every for interval in schedule.spec.intervals], schedule.spec.jitter),
        *(schedule.policy.overlap, schedule.policy.catchup_window),
    )


async def keep_scheduled(client: Client, every_s: float, *, look_every_s: float = LOOK_EVERY_S) -> None:
    """Ensure what Temporal must know of us, now and from time to time, until cancelled.

    From time to time, because a Temporal whose memory was lost has lost the schedule and the search attributes too.
    A namespace that forgets too soon is said once: how long it remembers is its owner's to decide.
    """
    update = True
    while True:
        try:
            if not await ensure_search_attributes(client) and update:
                log.warning("search_attributes_not_ours", names=", ".join(SEARCH_ATTRIBUTES))
            if update and (forgets := too_forgetful(await retention_of(client))):
                log.warning("retention_short", reason=forgets)
            if await ensure_housekeeping(client, every_s, update=update):
                log.info("housekeeping_scheduled", every_s=every_s)
            update = False
        except (RPCError, RuntimeError, TimeoutError) as error:  # RuntimeError: the SDK's word for "cannot connect"
            log.debug("housekeeping_not_scheduled", error=str(error))
        await asyncio.sleep(look_every_s)
