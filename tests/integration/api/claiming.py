"""One step of a real workflow, and workers that ask for it over HTTP."""

import asyncio
import hashlib
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import httpx
from temporalio import workflow
from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from activities.probing import ProbeSteps
from activities.transcode import TranscodeSteps
from contracts.ids import JobId, ObjectKey, VideoId
from contracts.media import SourceFacts
from contracts.queues import TaskQueue
from contracts.steps import Probe, TranscodedSpan, TranscodeRequest, TranscodeSpan
from tests.integration.api.running import Api
from tests.integration.api.workers import Machine, register
from tests.replay.fake_plans import FACTS, PLAN
from workflows import options
from workflows.stepping import Steps

QUEUE = "claiming"
SOURCE = bytes(range(256)) * 40
WAIT = {"pool": "cpu", "wait_s": 3}


@workflow.defn
class OneStep:
    """Run one transcode step by the rules of every job: generations, attempts, what each failure means."""

    @workflow.run
    async def run(self, span: TranscodeSpan, heartbeat_s: float) -> TranscodedSpan:
        job = TranscodeRequest(
            video_id=span.video_id,
            job_id=span.job_id,
            slug=span.slug,
            source_key=span.source_key,
            heartbeat_timeout_s=heartbeat_s,
        )
        promise = options.Promise(TaskQueue.CPU, limit_s=60)
        return await Steps(job).run(TranscodeSteps.transcode_span, span, promise, "one step")


@workflow.defn
class OneProbe:
    """Look at one source by the rules of every job."""

    @workflow.run
    async def run(self, probe: Probe) -> SourceFacts:
        job = TranscodeRequest(
            video_id=probe.video_id, job_id=probe.job_id, slug="x", source_key=probe.source_key, heartbeat_timeout_s=60
        )
        return await Steps(job).run(ProbeSteps.probe, probe, options.probe(len(SOURCE)), "one probe")


@dataclass(frozen=True)
class Waiting:
    """A step that waits for somebody to ask for it."""

    api: Api
    span: TranscodeSpan
    handle: WorkflowHandle[OneStep, TranscodedSpan]

    @property
    def folder(self) -> str:
        return f"videos/{self.span.slug}/r1/720p/"

    async def attempts(self) -> list[tuple[str, int, int, str | None]]:
        rows = await self.api.rows(
            "SELECT outcome, generation, attempt, error_code FROM job_steps"
            " WHERE job_id = :job ORDER BY generation, attempt",
            job=self.span.job_id,
        )
        return [(row["outcome"], row["generation"], row["attempt"], row["error_code"]) for row in rows]


@asynccontextmanager
async def workflows(api: Api) -> AsyncIterator[None]:
    # The API's own client is lazy, and workers want one that is connected.
    address = api.temporal.service_client.config.target_host
    client = await Client.connect(address, data_converter=api.temporal.data_converter)
    async with Worker(
        client, task_queue=QUEUE, workflows=[OneStep, OneProbe], workflow_runner=UnsandboxedWorkflowRunner()
    ):
        yield


async def new_span(api: Api) -> TranscodeSpan:
    """Upload something, and ask for a span of it."""
    created = (await api.http.put("/api/videos?filename=a.mp4", content=SOURCE)).json()
    return TranscodeSpan(
        job_id=JobId(created["job_id"]),
        video_id=VideoId(created["video_id"]),
        source_key=ObjectKey(f"uploads/{created['video_id']}.mp4"),
        slug=created["slug"],
        output="r1",
        video=FACTS.video,
        grid=PLAN.grid,
        span=PLAN.spans[0],
        renditions=PLAN.renditions,
        encoding=PLAN.encoding,
    )


@asynccontextmanager
async def step(api: Api, heartbeat_s: float = 60.0) -> AsyncIterator[Waiting]:
    """Schedule a step; whatever is left of it is gone afterwards, for tests share their Temporal."""
    span = await new_span(api)
    async with workflows(api):
        handle = await api.temporal.start_workflow(
            OneStep.run, args=[span, heartbeat_s], id=f"one-step-{uuid.uuid4()}", task_queue=QUEUE
        )
        try:
            yield Waiting(api, span, handle)
        finally:
            with suppress(RPCError):  # it has ended
                await handle.terminate()


@asynccontextmanager
async def probe(api: Api) -> AsyncIterator[WorkflowHandle[OneProbe, SourceFacts]]:
    """Upload something, and ask for a look at it."""
    created = (await api.http.put("/api/videos?filename=a.mp4", content=SOURCE)).json()
    asked = Probe(
        job_id=JobId(created["job_id"]),
        video_id=VideoId(created["video_id"]),
        source_key=ObjectKey(f"uploads/{created['video_id']}.mp4"),
    )
    async with workflows(api):
        name = f"one-probe-{created['video_id']}"
        handle = await api.temporal.start_workflow(OneProbe.run, asked, id=name, task_queue=QUEUE)
        try:
            yield handle
        finally:
            with suppress(RPCError):
                await handle.terminate()


@dataclass(frozen=True)
class Remote:
    """A worker that has only its key, and one step."""

    machine: Machine
    api: Api
    claimed: dict[str, Any]

    @property
    def claim(self) -> str:
        return str(self.claimed["claim"])

    @property
    def headers(self) -> dict[str, str]:
        return {"X-Worker-API-Key": self.machine.key, "X-Worker-Claim": self.claim}

    async def tell(self, what: str, **more: Any) -> httpx.Response:
        return await post(self.api, self.machine, what, claim=self.claim, **more)

    async def get(self, path: str, **headers: str) -> httpx.Response:
        return await self.api.http.get(f"/api/worker/{path}", headers=self.headers | headers)

    async def put(self, key: str, data: bytes, checksum: str | None = None, **headers: str) -> httpx.Response:
        said = {"X-Content-SHA256": checksum or hashlib.sha256(data).hexdigest()}
        return await self.api.http.put(f"/api/worker/output/{key}", content=data, headers=self.headers | said | headers)


async def post(api: Api, machine: Machine, what: str, **body: Any) -> httpx.Response:
    return await api.http.post(f"/api/worker/{what}", json=body, headers={"X-Worker-API-Key": machine.key})


async def claimed(
    api: Api, name: str = "studio", machine: Machine | None = None, *, says: bool = True, pool: str = "cpu"
) -> Remote:
    """Let a worker ask until it has a step, and say so, as every worker does at once."""
    machine = machine or await register(api, name)
    async with asyncio.timeout(60):
        while (answer := await post(api, machine, "claim", pool=pool, wait_s=3)).status_code == 204:
            pass
    assert answer.status_code == 200, answer.text
    remote = Remote(machine, api, answer.json())
    if says:
        heard = await remote.tell("progress")
        assert heard.status_code == 200, heard.text
    return remote
