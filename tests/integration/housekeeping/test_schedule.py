"""One schedule, however many processes ensure it; one run at a time, and a chore that fails stops no other."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from temporalio import activity
from temporalio.client import Client, ScheduleActionStartWorkflow, WorkflowExecutionStatus
from temporalio.worker import Worker

from activities.failures import FailureInterceptor
from contracts.errors import StorageUnavailable
from contracts.housekeeping import HOUSEKEEPING, ChoreDone, KeepHouse, KeptHouse
from contracts.queues import TaskQueue
from runtime.schedules import ensure_housekeeping, keep_scheduled
from tests.support.eventually import eventually
from workflows.housekeeping import CHORES, Housekeeping


@pytest.fixture(autouse=True)
async def _no_schedule(client: Client) -> Any:
    yield
    async for found in await client.list_schedules():
        await client.get_schedule_handle(found.id).delete()


async def every(client: Client) -> timedelta:
    found = (await client.get_schedule_handle(HOUSEKEEPING).describe()).schedule
    return found.spec.intervals[0].every


async def test_six_processes_make_one_schedule_and_change_it_once(client: Client) -> None:
    made = await asyncio.gather(*(ensure_housekeeping(client, 60) for _ in range(6)))
    assert made.count(True) == 1
    assert await asyncio.gather(*(ensure_housekeeping(client, 60) for _ in range(3))) == [False] * 3
    assert await ensure_housekeeping(client, 30)
    assert await every(client) == timedelta(seconds=30)


async def test_the_schedule_skips_overlaps_catches_up_little_and_never_hangs(client: Client) -> None:
    await ensure_housekeeping(client, 60)
    schedule = (await client.get_schedule_handle(HOUSEKEEPING).describe()).schedule
    assert schedule.spec.jitter == timedelta(seconds=6)
    assert (schedule.policy.overlap.name, schedule.policy.catchup_window) == ("SKIP", timedelta(seconds=60))
    assert isinstance(schedule.action, ScheduleActionStartWorkflow)
    assert schedule.action.execution_timeout == timedelta(minutes=5)


async def test_a_persons_pause_survives_a_change_of_settings(client: Client) -> None:
    await ensure_housekeeping(client, 60)
    await client.get_schedule_handle(HOUSEKEEPING).pause(note="moving house")
    assert await ensure_housekeeping(client, 30)
    state = (await client.get_schedule_handle(HOUSEKEEPING).describe()).schedule.state
    assert (state.paused, state.note) == (True, "moving house")


async def test_a_schedule_that_was_lost_comes_back_and_one_of_another_setting_is_left(client: Client) -> None:
    keeping = asyncio.create_task(keep_scheduled(client, 60, look_every_s=0.2))
    try:

        async def there() -> bool:
            return [found.id async for found in await client.list_schedules()] == [HOUSEKEEPING]

        await eventually(there, within=30)
        await client.get_schedule_handle(HOUSEKEEPING).delete()
        await eventually(there, within=30)
        await ensure_housekeeping(client, 45)  # somebody else's setting, later
        await asyncio.sleep(1)
        assert await every(client) == timedelta(seconds=45)
    finally:
        keeping.cancel()


def fake_chores(failing: str) -> list[Any]:
    """Make a chore of each name that the workflow calls; one of them fails."""

    def make(name: str, place: int) -> Any:
        async def chore(request: KeepHouse) -> ChoreDone:
            if name == failing:
                raise StorageUnavailable("The disk is away.")
            return ChoreDone(count=place)

        chore.__name__ = name
        return activity.defn(name=name)(chore)

    return [make(chore.__name__, place) for place, chore in enumerate(CHORES)]


async def test_a_chore_that_fails_stops_no_other(client: Client) -> None:
    names = [chore.__name__ for chore in CHORES]
    worker = Worker(
        client,
        task_queue=TaskQueue.ORCHESTRATE,
        workflows=[Housekeeping],
        activities=fake_chores(names[2]),
        interceptors=[FailureInterceptor()],
    )
    await ensure_housekeeping(client, 1)
    async with worker:

        async def kept() -> bool:
            done = [run async for run in client.list_workflows("WorkflowType = 'Housekeeping'")]
            return any(run.status is WorkflowExecutionStatus.COMPLETED for run in done)

        await eventually(kept, within=60)
        runs = [run async for run in client.list_workflows("WorkflowType = 'Housekeeping'")]
        done = next(run for run in runs if run.status is WorkflowExecutionStatus.COMPLETED)
        result = await client.get_workflow_handle(done.id, result_type=KeptHouse).result()
    assert list(result.failed) == [names[2]] and "The disk is away." in result.failed[names[2]]
    assert result.done == {name: place for place, name in enumerate(names) if place and name != names[2]}
