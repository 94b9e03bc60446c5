"""Run the workflow with fake steps on a real Temporal, for tests and for recording histories.

`python -m tests.replay.stories` re-records `histories/` (allowed until 0.1 is tagged; afterwards only added to).
"""

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import temporalio.worker.workflow_sandbox as sandbox
from temporalio.client import Client, WorkflowHandle
from temporalio.common import SearchAttributeKey
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from activities.failures import FailureInterceptor
from contracts.ids import JobId, ObjectKey, VideoId, workflow_id
from contracts.queues import SEARCH_TIER, SEARCH_VIDEO_ID, SEARCH_VIDEO_STATUS, TaskQueue
from contracts.steps import TranscodeRequest, TranscodeResult
from runtime.locate import temporal_binary
from runtime.temporal_server import DYNAMIC_CONFIG
from tests.replay.fake_steps import FakeSteps
from workflows.encode_list import TranscodeList
from workflows.transcode_video import TranscodeVideo

HISTORIES = Path(__file__).parent / "histories"
STORIES = (
    "success",
    "retried",
    "drained",
    "later",
    "unreadable",
    "exhausted",
    "cancelled",
    "split",
    "anew",
    "broken",
    "no storyboard",
)

REQUEST = TranscodeRequest(
    video_id=VideoId(1), job_id=JobId(1), slug="x", source_key=ObjectKey("uploads/1.mp4"), max_attempts=2
)


@asynccontextmanager
async def temporal_for_stories() -> AsyncIterator[Client]:
    environment = await WorkflowEnvironment.start_local(
        data_converter=pydantic_data_converter,
        dev_server_existing_path=str(temporal_binary()),
        dev_server_log_level="error",
        dev_server_extra_args=[word for value in DYNAMIC_CONFIG for word in ("--dynamic-config-value", value)],
        search_attributes=[
            SearchAttributeKey.for_keyword(SEARCH_VIDEO_ID),
            SearchAttributeKey.for_keyword(SEARCH_VIDEO_STATUS),
            SearchAttributeKey.for_int(SEARCH_TIER),
        ],
    )
    try:
        yield environment.client
    finally:
        await environment.shutdown()


@asynccontextmanager
async def telling(
    client: Client, steps: FakeSteps, *, slots: int | None = None
) -> AsyncIterator[WorkflowHandle[TranscodeVideo, TranscodeResult]]:
    """Serve all queues with fake steps, `slots` of them at a time, and start the story."""
    async with AsyncExitStack() as running:
        for queue, served in steps.by_queue().items():
            workflows = [TranscodeVideo, TranscodeList] if queue == TaskQueue.ORCHESTRATE else []
            worker = Worker(
                client,
                task_queue=queue,
                workflows=workflows,
                activities=served,
                interceptors=[FailureInterceptor(first_delay_s=0.05)],
                max_concurrent_activities=slots,
                disable_eager_activity_execution=True,  # as the real ones
                workflow_runner=sandbox.SandboxedWorkflowRunner(),
            )
            await running.enter_async_context(worker)
        yield await client.start_workflow(
            TranscodeVideo.run,
            REQUEST,
            id=f"{workflow_id(REQUEST.video_id, REQUEST.job_id)}-{steps.story}-{os.getpid()}",
            task_queue=TaskQueue.ORCHESTRATE,
        )


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
                if story == "cancelled":
                    await steps.planning.wait()
                    await handle.cancel()
                try:
                    await handle.result()
                except Exception as error:
                    print(f"{story}: {error.__cause__!r}")
                history = await handle.fetch_history()
            text = json.dumps(scrubbed(json.loads(history.to_json())), indent=1)
            (HISTORIES / f"{story.replace(' ', '-')}.json").write_text(text + "\n")
            print(f"{story}: {len(history.events)} events")


if __name__ == "__main__":
    asyncio.run(record())
    os._exit(0)
