"""A new version of the code is rolled out in the middle of a video, by Temporal's worker versioning."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from temporalio import activity
from temporalio.api.workflowservice.v1 import SetWorkerDeploymentCurrentVersionRequest
from temporalio.client import Client, WorkflowHandle
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.service import RPCError
from temporalio.worker import Worker

from activities.failures import FailureInterceptor
from contracts.queues import Pool, TaskQueue
from runtime.settings import Settings
from tests.integration.workers.queueing import parts_of
from tests.replay.fake_steps import FakeSteps
from tests.replay.stories import REQUEST
from tests.support.eventually import eventually
from tests.support.media_facts import toolbox
from workers import build
from workers.build import build_worker
from workflows.transcode_video import TranscodeVideo

DEPLOYMENT = "vlog-test"


class Gated(FakeSteps):
    """Encodes when it is let go, and is not disturbed by anything else."""

    async def _hold(self) -> None:
        while not self.let_go:
            activity.heartbeat()
            await asyncio.sleep(0.02)


async def test_a_video_ends_on_the_version_it_began_with_while_another_takes_the_new_ones(
    own_client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = own_client  # which version is current outlives the test
    steps = Gated("cancelled while encoding")
    served = steps.by_queue()
    monkeypatch.setattr(build, "steps", lambda pool, parts: served[pool.queue])
    settings = Settings(home=tmp_path, worker_deployment=DEPLOYMENT)

    async def orchestrating(version: str) -> Worker:
        # One worker per queue and connection: the other version is another process.
        own = await Client.connect(
            client.service_client.config.target_host, data_converter=pydantic_data_converter, identity=version
        )
        parts = replace(parts_of(tmp_path, 5, toolbox()), settings=settings, version=version)
        made = build_worker(own, Pool.ORCHESTRATE, parts, FailureInterceptor())
        assert made is not None
        return made

    async def begun(name: str) -> WorkflowHandle[Any, Any]:
        return await client.start_workflow(TranscodeVideo.run, REQUEST, id=name, task_queue=TaskQueue.ORCHESTRATE)

    async with AsyncExitStack() as running:
        for queue in (TaskQueue.PROBE, TaskQueue.IO, TaskQueue.CPU):
            await running.enter_async_context(Worker(client, task_queue=queue, activities=served[queue]))
        await running.enter_async_context(await orchestrating("1.0+old"))
        await _make_current(client, "1.0+old")
        first = await begun("first")
        await asyncio.wait_for(steps.encoding.wait(), 60)
        await running.enter_async_context(await orchestrating("1.1+new"))
        await _make_current(client, "1.1+new")
        second = await begun("second")

        async def is_encoding_too() -> bool:
            return steps.held == 2

        await eventually(is_encoding_too, within=30)
        steps.let_go = True
        for handle in (first, second):
            assert (await asyncio.wait_for(handle.result(), 60)).status == "ready"
    assert await _versions(first) == {"1.0+old"}
    assert await _versions(second) == {"1.1+new"}


async def _make_current(client: Client, version: str) -> None:
    request = SetWorkerDeploymentCurrentVersionRequest(
        namespace=client.namespace, deployment_name=DEPLOYMENT, build_id=version
    )

    async def is_current() -> bool:
        try:
            await client.workflow_service.set_worker_deployment_current_version(request)
        except RPCError:  # it has not been heard of yet
            return False
        return True

    await eventually(is_current, within=30)


async def _versions(handle: WorkflowHandle[Any, Any]) -> set[str]:
    """Tell whose code decided: every decision of a workflow names it."""
    events = (await handle.fetch_history()).events
    decided = [event.workflow_task_completed_event_attributes for event in events]
    return {each.deployment_version.build_id for each in decided if each.deployment_version.build_id}
