"""`python -m tests.replay.record` re-records `histories/` (allowed until 0.1 is tagged; afterwards only added to)."""

import asyncio
import json
import os
import re
from typing import Any

from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.worker import Worker

from activities.failures import FailureInterceptor
from contracts.housekeeping import KeepHouse
from contracts.queues import TaskQueue
from tests.replay import gpu_stories, outgrown_stories
from tests.replay.fake_chores import AWAY, BUSY, fake_chores
from tests.replay.fake_plans import LONG
from tests.replay.fake_steps import FakeSteps
from tests.replay.stories import COMMANDS, HISTORIES, HOUSE, STORIES, dashed, telling, temporal_for_stories
from tests.replay.webhook_stories import WEBHOOK_STORIES, FakeReceiver, telling_webhook
from workflows.housekeeping import Housekeeping


def scrubbed(found: Any) -> Any:
    """Leave out what names the machine that recorded it: stack traces, and identities such as `123@host`."""
    if isinstance(found, dict):
        return {key: scrubbed(value) for key, value in found.items() if key != "stackTrace"}
    if isinstance(found, list):
        return [scrubbed(each) for each in found]
    return re.sub(r"^\d+@.*", "recorded", found) if isinstance(found, str) else found


async def record() -> None:
    HISTORIES.mkdir(exist_ok=True)
    async with temporal_for_stories() as client:
        for story in STORIES:
            steps = FakeSteps(story)
            async with telling(client, steps) as handle:
                if command := COMMANDS.get(story):
                    await command(handle, steps)
                try:
                    await handle.result()
                except Exception as error:
                    print(f"{story}: {error.__cause__!r}")
                await _keep(story, handle)
                if steps.planned.spans == LONG.spans:
                    await _keep(f"{story} 360p", client.get_workflow_handle(f"{handle.id}-360p"))
                if story == gpu_stories.FAILS_LISTS:
                    await _keep(f"{story} 720p", client.get_workflow_handle(f"{handle.id}-720p"))
        for story in WEBHOOK_STORIES:
            async with telling_webhook(client, FakeReceiver(story)) as delivery:
                await delivery.result()
                await _keep(story, delivery)


async def record_outgrown() -> None:
    """Record the runs that others went on from, and one of those others."""
    async with temporal_for_stories(outgrown_stories.CONFIG) as client:
        for story in outgrown_stories.RECORDED:
            steps = FakeSteps(story)
            with outgrown_stories.hurried(story):
                async with telling(client, steps) as handle:
                    if command := COMMANDS.get(story):
                        await command(handle, steps)
                    try:
                        await handle.result()
                    except WorkflowFailureError as error:
                        print(f"{story}: {error.__cause__!r}")
            await _keep(story, _first_run(client, steps, handle.id))
            if story == outgrown_stories.LISTS:
                await _keep(f"{story} 360p", _first_run(client, steps, f"{handle.id}-360p"))
            if steps.calls.count("plan") > 1 and story not in (outgrown_stories.DAYS, outgrown_stories.LISTS):
                await _keep(f"{story} goes on", handle)


def _first_run(client: Client, steps: FakeSteps, name: str) -> WorkflowHandle[Any, Any]:
    return client.get_workflow_handle(name, run_id=next(run for run, of in steps.runs.items() if of == name))


async def record_house() -> None:
    """Record one run of Housekeeping, in which a chore fails."""
    async with temporal_for_stories() as client:
        house = Worker(
            client,
            task_queue=TaskQueue.ORCHESTRATE,
            workflows=[Housekeeping],
            activities=fake_chores(),
            interceptors=[FailureInterceptor()],
            disable_eager_activity_execution=True,
        )
        async with house:
            handle = await client.start_workflow(
                Housekeeping.run, KeepHouse(), id=HOUSE, task_queue=TaskQueue.ORCHESTRATE
            )
            kept = await handle.result()
            assert (kept.done, list(kept.failed)) == ({BUSY: 2}, [AWAY])
            await _keep(HOUSE, handle)


async def _keep(story: str, handle: WorkflowHandle[Any, Any]) -> None:
    history = await handle.fetch_history()
    text = json.dumps(scrubbed(json.loads(history.to_json())), indent=1)
    (HISTORIES / f"{dashed(story)}.json").write_text(text + "\n")
    print(f"{story}: {len(history.events)} events")


if __name__ == "__main__":
    asyncio.run(record())
    asyncio.run(record_outgrown())
    asyncio.run(record_house())
    os._exit(0)
