"""Transcode steps by the dozen, queued before anybody asks for them, on a real Temporal."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from activities.failures import FailureInterceptor
from contracts.errors import Drained
from contracts.ids import JobId, ObjectKey, VideoId
from contracts.queues import Pool, TaskQueue
from contracts.steps import TranscodedSpan, TranscodeSpan
from media.planning import PlanOptions, make_plan
from media.tools import Toolbox
from media.weights import need_of
from mirror.recorder import StepRecorder, WorkerIdentity
from mirror.sessions import Database
from runtime.settings import Settings
from storage.local import LocalStore
from tests.support.eventually import eventually
from tests.support.media_facts import source, toolbox, video
from workers.build import Parts, build_worker
from workers.room import Room

QUEUE = "queueing"


@workflow.defn
class QueueSpans:
    @workflow.run
    async def run(self, spans: list[TranscodeSpan], attempts: int = 2) -> int:
        return len(await asyncio.gather(*(_made(*each, attempts) for each in enumerate(spans))))


async def _made(number: int, span: TranscodeSpan, attempts: int) -> TranscodedSpan:
    """Ask for a step, and again when a worker that stopped asking was just then given it."""
    while True:
        try:
            made: TranscodedSpan = await workflow.execute_activity(
                "transcode_span",
                span,
                activity_id=f"{number:03d}",
                task_queue=TaskQueue.CPU,
                start_to_close_timeout=timedelta(seconds=120),
                heartbeat_timeout=timedelta(seconds=60),
                retry_policy=RetryPolicy(maximum_attempts=attempts),
                result_type=TranscodedSpan,
            )
        except ActivityError as error:
            if not isinstance(error.cause, ApplicationError) or error.cause.type != Drained.code:
                raise
        else:
            return made


def span(side: int, number: int) -> TranscodeSpan:
    """Ask for all rungs of a video of that height that does not exist."""
    facts = source(video(side * 16 // 9, side))
    plan = make_plan(facts, PlanOptions(), toolbox())
    return TranscodeSpan(
        job_id=JobId(number),
        video_id=VideoId(number),
        source_key=ObjectKey("uploads/1"),
        slug="x",
        output="r1",
        video=facts.video,
        grid=plan.grid,
        span=plan.spans[0],
        renditions=plan.renditions,
        encoding=plan.encoding,
    )


class CountedSteps:
    """Steps that only beat; how many of them run, and what they weigh, is counted whenever one begins."""

    def __init__(self, *, together: int) -> None:
        self._together = together  # a light step waits until so many of them run
        self._reached = asyncio.Event()
        self.running: list[int] = []
        self.seen: list[tuple[int, ...]] = []

    @activity.defn
    async def transcode_span(self, request: TranscodeSpan) -> TranscodedSpan:
        slots = need_of(request).slots
        self.running.append(slots)
        self.seen.append(tuple(self.running))
        if self.running.count(1) >= self._together:
            self._reached.set()
        try:
            while slots == 1 and not self._reached.is_set():
                activity.heartbeat()
                await asyncio.sleep(0.01)
            for _ in range(20):  # beats in a hurry, for other steps to begin meanwhile
                activity.heartbeat()
                await asyncio.sleep(0.005)
        finally:
            self.running.remove(slots)
        return TranscodedSpan(segments=1)


def parts_of(folder: Path, slots: int, tools: Toolbox, *, memory_bytes: int = 1 << 40) -> Parts:
    """A worker without a mirror: its recorder remembers and never writes."""
    settings, store = Settings(home=folder), LocalStore(folder / "storage")
    database = Database("postgresql+asyncpg://nobody@127.0.0.1:1/none")
    recorder = StepRecorder(database, WorkerIdentity("counted"))
    room = Room(memory_bytes, store.free_bytes)
    return Parts(settings, store, database, tools, recorder, dict.fromkeys(Pool, slots), room=room)


@asynccontextmanager
async def all_queued(
    client: Client, spans: list[TranscodeSpan], name: str, attempts: int = 2
) -> AsyncIterator["asyncio.Task[int]"]:
    """Queue the steps, and go on when Temporal has every one of them."""
    async with Worker(client, task_queue=QUEUE, workflows=[QueueSpans], workflow_runner=UnsandboxedWorkflowRunner()):
        handle = await client.start_workflow(QueueSpans.run, args=[spans, attempts], id=name, task_queue=QUEUE)

        async def is_queued() -> bool:
            return len((await handle.describe()).raw_description.pending_activities) == len(spans)

        await eventually(is_queued, within=20)
        ended = asyncio.create_task(handle.result())
        yield ended
        await ended


def worker(client: Client, parts: Parts) -> Worker:
    made = build_worker(client, Pool.CPU, parts, FailureInterceptor())
    assert made is not None
    return made
