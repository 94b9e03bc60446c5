"""Who takes a step: one worker and no other, and none that was told to stop."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from temporalio import activity
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter

from activities.failures import FailureInterceptor
from contracts.errors import EncoderCrashed
from contracts.plan import Span
from contracts.queues import Pool
from contracts.steps import TranscodedSpan, TranscodeSpan
from mirror.claims import WorkerIdentity
from mirror.recorder import StepRecorder
from mirror.sessions import Database
from tests.integration.mirror.story import planned, register, rows_of
from tests.integration.workers.queueing import all_queued, parts_of, span, worker
from tests.support.media_facts import toolbox
from workers import build
from workers.build import Parts, build_worker
from workers.serving import Serving

STEPS = 24
WITHIN_S = 120.0

Step = Callable[[TranscodeSpan], Coroutine[Any, Any, TranscodedSpan]]
Attempt = tuple[str, int]


class Competing:
    """Steps of several workers, that say who ran what. Nobody is done before each worker has one."""

    def __init__(self, *workers: str) -> None:
        self._workers = set(workers)
        self.taken: list[tuple[Attempt, str]] = []

    def by(self, name: str) -> Step:
        @activity.defn(name="transcode_span")
        async def transcode_span(request: TranscodeSpan) -> TranscodedSpan:
            attempt = activity.info().attempt
            self.taken.append(((request.step_key, attempt), name))
            while {taker for _, taker in self.taken} != self._workers:
                activity.heartbeat()
                await asyncio.sleep(0.01)
            if attempt == 1 and request.span.first_segment % 4 == 0:
                raise EncoderCrashed("Not at the first attempt.")
            return TranscodedSpan(segments=1)

        return transcode_span


async def test_workers_that_compete_take_each_attempt_once_and_the_mirror_names_who(
    client: Client, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("studio", "attic")
    competing = Competing(*names)
    monkeypatch.setattr(build, "steps", lambda pool, parts: [competing.by(parts.version)])
    video = await planned(database)
    spans = [
        span(360, 0).model_copy(
            update={
                "job_id": video.job_id,
                "video_id": video.video_id,
                "span": Span(first_segment=number, segments=1),
            }
        )
        for number in range(STEPS)
    ]
    recorders = []
    async with all_queued(client, spans, "competing") as ended, AsyncExitStack() as running:
        for name in names:
            identity = WorkerIdentity(name, name)
            await register(database, identity)
            recorders.append(StepRecorder(database, identity))
            parts = replace(parts_of(tmp_path, 3, toolbox()), recorder=recorders[-1], version=name)
            # A connection of its own, as another process has.
            target = client.service_client.config.target_host
            own = await Client.connect(target, data_converter=pydantic_data_converter, identity=name)
            made = build_worker(own, Pool.CPU, parts, FailureInterceptor(first_delay_s=1.0))
            assert made is not None
            await running.enter_async_context(made)
        assert await asyncio.wait_for(ended, WITHIN_S) == STEPS
    for recorder in recorders:
        await recorder.close()

    wanted = {(each.step_key, 1) for each in spans}
    wanted |= {(each.step_key, 2) for each in spans if each.span.first_segment % 4 == 0}
    assert Counter(attempt for attempt, _ in competing.taken) == dict.fromkeys(wanted, 1)
    assert {taker for _, taker in competing.taken} == set(names)
    rows = await rows_of(database, "SELECT step_key, attempt, generation, worker_id FROM job_steps")
    seen = Counter(((row["step_key"], row["attempt"]), row["worker_id"]) for row in rows)
    # A first attempt that failed in a blink may be overtaken by the second before it was written; no other.
    last = {taken for taken in competing.taken if (taken[0][0], 2) not in wanted or taken[0][1] == 2}
    assert last <= set(seen) <= set(competing.taken) and set(seen.values()) == {1}
    assert {row["generation"] for row in rows} == {0}


class LastOne:
    """A step that goes on until its worker is told to stop, and a little longer; later ones are short."""

    def __init__(self) -> None:
        self.began, self.taken, self.told = asyncio.Event(), 0, False

    @activity.defn
    async def transcode_span(self, request: TranscodeSpan) -> TranscodedSpan:
        self.taken += 1
        self.began.set()
        if not self.told:
            await activity.wait_for_worker_shutdown()
            for _ in range(20):
                activity.heartbeat()
                await asyncio.sleep(0.02)
        return TranscodedSpan(segments=1)


async def test_a_worker_that_was_told_to_stop_ends_what_it_has_and_takes_nothing_new(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, failures = LastOne(), FailureInterceptor()
    monkeypatch.setattr(build, "steps", lambda pool, parts: [steps.transcode_span])
    parts: Parts = parts_of(tmp_path, 1, toolbox())
    async with all_queued(client, [span(360, number) for number in range(4)], "draining") as ended:
        stopping = asyncio.Event()
        serving = Serving(lambda pool: build_worker(client, pool, parts, failures), failures)
        serving.allow([Pool.CPU])
        running = asyncio.create_task(serving.run(stopping))
        await asyncio.wait_for(steps.began.wait(), WITHIN_S)
        stopping.set()
        await asyncio.wait_for(running, WITHIN_S)
        assert steps.taken == 1
        described = await client.get_workflow_handle("draining").describe()
        left = [each.activity_id for each in described.raw_description.pending_activities]
        assert len(left) == 3, "the one it had ended well, and the others wait for somebody else"
        steps.told = True
        async with worker(client, parts):
            assert await asyncio.wait_for(ended, WITHIN_S) == 4
    assert steps.taken == 4
