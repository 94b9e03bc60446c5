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


async def never() -> None:
    await asyncio.Event().wait()


async def polled(asked_s: float, times: int) -> list[tuple[float, float]]:
    """Ask for work some times, and give for how long and until when Temporal was asked."""
    polls: list[tuple[float, float]] = []

    async def poll(request: Any, *, timeout: timedelta) -> PollActivityTaskQueueResponse:
        wait_s = timeout.total_seconds()
        polls.append((wait_s, time.monotonic() + wait_s))
        return PollActivityTaskQueueResponse()

    temporal: Any = SimpleNamespace(
        namespace="default", workflow_service=SimpleNamespace(poll_activity_task_queue=poll)
    )
    gateway = Gateway(temporal)
    for _ in range(times):
        await asyncio.sleep(0.06)
        assert await gateway.claim(TaskQueue.CPU, "far", asked_s, never, asyncio.Event()) is None
    return polls


@pytest.mark.parametrize("asked_s", [LEAST_WAIT_S + TOGETHER_S, 7.3, MOST_WAIT_S])
async def test_waits_end_at_whole_seconds_and_are_no_longer_than_asked(asked_s: float) -> None:
    polls = await polled(asked_s, 5)
    assert all(asked_s - TOGETHER_S <= wait_s <= asked_s for wait_s, _ in polls)
    beyond = [until % TOGETHER_S for _, until in polls]
    assert max(min(late, TOGETHER_S - late) for late in beyond) < 0.1, beyond


@pytest.mark.parametrize("asked_s", [LEAST_WAIT_S, LEAST_WAIT_S + 0.9])
async def test_a_wait_that_is_short_already_is_left_alone(asked_s: float) -> None:
    """Temporal takes none that is much shorter."""
    assert [wait_s for wait_s, _ in await polled(asked_s, 2)] == pytest.approx([asked_s] * 2)
