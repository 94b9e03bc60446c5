"""What waits in Temporal's queues is moved with its job, in the workflows of long lists too."""

from datetime import timedelta
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError

from api.moving import prioritize
from contracts.states import Tier
from tests.replay.fake_steps import FakeSteps
from tests.replay.stories import telling, temporal_for_stories
from tests.support.eventually import eventually


class NobodyEncodes(FakeSteps):
    """Every step that needs an encoder waits in its queue."""

    def by_queue(self) -> dict[str, list[Any]]:
        return {queue: steps for queue, steps in super().by_queue().items() if queue != "vlog-cpu"}


async def waiting(client: Client, workflow_id: str) -> dict[str, tuple[int, str]]:
    """Give the priority and the turn of everything that a workflow and its children wait for."""
    found = (await client.get_workflow_handle(workflow_id).describe()).raw_description
    queued = {
        f"{workflow_id}/{each.activity_id}": (each.priority.priority_key, each.priority.fairness_key)
        for each in found.pending_activities
    }
    for child in found.pending_children:
        queued |= await waiting(client, child.workflow_id)
    return queued


async def test_a_change_of_priority_moves_what_waits_in_child_workflows_too() -> None:
    async with temporal_for_stories() as client, telling(client, NobodyEncodes("lists")) as handle:

        async def both_lists_wait() -> bool:
            return {key.partition("/")[0] for key in await waiting(client, handle.id)} >= {
                f"{handle.id}-360p",
                f"{handle.id}-720p",
            }

        await eventually(both_lists_wait, within=60)
        before = await waiting(client, handle.id)
        assert {key for key, _ in before.values()} == {Tier.FREE.priority}
        await prioritize(client, handle, Tier.VIRAL, named="asked", within=timedelta(seconds=60))
        after = await waiting(client, handle.id)
        assert after.keys() >= before.keys()
        assert {key for key, _ in after.values()} == {Tier.VIRAL.priority}
        # Whose turn it is has not changed: openings keep theirs.
        assert {name: turn for name, (_, turn) in before.items()}.items() <= {
            name: turn for name, (_, turn) in after.items()
        }.items()
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await handle.result()
