"""Questions that find nothing are answered together, and none waits for longer than it asked."""

import asyncio
import time
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from temporalio.api.workflowservice.v1 import PollActivityTaskQueueResponse

from api.gateway import TOGETHER_S, Gateway
from contracts.gateway import LEAST_WAIT_S, MOST_WAIT_S
from contracts.queues import TaskQueue


@pytest.mark.parametrize("asked_s", [LEAST_WAIT_S + TOGETHER_S, 7.3, MOST_WAIT_S])
async def test_waits_end_at_whole_seconds_and_are_no_longer_than_asked(asked_s: float) -> None:
    ends: list[float] = []

    async def poll(request: Any, *, timeout: timedelta) -> PollActivityTaskQueueResponse:
        assert max(asked_s - TOGETHER_S, LEAST_WAIT_S) <= timeout.total_seconds() <= asked_s
        ends.append(time.monotonic() + timeout.total_seconds())
        return PollActivityTaskQueueResponse()

    temporal: Any = SimpleNamespace(
        namespace="default", workflow_service=SimpleNamespace(poll_activity_task_queue=poll)
    )
    gateway = Gateway(temporal)

    async def never() -> None:
        await asyncio.Event().wait()

    for _ in range(5):
        await asyncio.sleep(0.06)
        assert await gateway.claim(TaskQueue.CPU, "far", asked_s, never, asyncio.Event()) is None
    beyond = [end % TOGETHER_S for end in ends]
    assert max(min(late, TOGETHER_S - late) for late in beyond) < 0.1, beyond
