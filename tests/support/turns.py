"""Many videos before one slot: who is taken first? Real Temporal, real workflows, steps that only answer.

The queue that is watched has no worker until everything waits in it.
"""

from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from temporalio import activity
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue as RawQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client
from temporalio.worker import Worker

from activities.failures import FailureInterceptor
from contracts.ids import JobId, ObjectKey, VideoId, workflow_id
from contracts.media import SourceFacts
from contracts.plan import Span, TranscodePlan
from contracts.queues import TaskQueue
from contracts.starting import Start
from contracts.states import Tier
from contracts.steps import EncodeAudio, EncodedAudio, MakePlan, Probe, TranscodedSpan, TranscodeRequest, TranscodeSpan
from tests.replay.fake_plans import PLAN
from tests.replay.fake_steps import FakeSteps
from tests.support.eventually import eventually
from workflows.encode_list import TranscodeList
from workflows.starting import TranscodeStarter
from workflows.transcode_video import TranscodeVideo

STEPS, WORKFLOWS = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY, TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW

FRESH_COUNTS = 'matching.TaskQueueInfoByBuildIdTTL="10ms"'  # a server counts what waits every five seconds otherwise

# The lowest rung ahead of the other, in two spans each: an opening, what runs ahead, the rest.
SPANS = 2
IN_SPANS = PLAN.model_copy(
    update={
        "spans": tuple(Span(first_segment=4 * n, segments=4) for n in range(SPANS)),
        "grid": PLAN.grid.model_copy(update={"frames": SPANS * 4 * 180}),
        "lists": (("360p",), ("720p",)),
        "window": SPANS,
        "subtitles": (),
    }
)


@dataclass(frozen=True)
class Queued:
    """One video that waits."""

    number: int
    tier: Tier
    owner: str
    plan: TranscodePlan = IN_SPANS

    @property
    def workflow_id(self) -> str:
        return workflow_id(VideoId(self.number), JobId(self.number))

    @property
    def request(self) -> TranscodeRequest:
        return TranscodeRequest(
            video_id=VideoId(self.number),
            job_id=JobId(self.number),
            slug=f"v{self.number}",
            source_key=ObjectKey(f"uploads/{self.number}.mp4"),
            owner=self.owner,
            tier=self.tier,
        )


class Noting(FakeSteps):
    """Steps that note for which video they ran, in their order."""

    def __init__(self, videos: Sequence[Queued]) -> None:
        super().__init__()
        self._plans = {video.number: video.plan for video in videos}
        self.probed: list[int] = []
        self.order: list[TranscodeSpan | EncodeAudio] = []
        self.waited_with: list[int] = []  # the priority of each span, by Temporal

    @activity.defn
    async def probe(self, request: Probe) -> SourceFacts:
        self.probed.append(request.video_id)
        return await super().probe(request)

    @activity.defn
    async def plan(self, request: MakePlan) -> TranscodePlan:
        return self._plans[request.video_id]

    @activity.defn
    async def encode_audio(self, request: EncodeAudio) -> EncodedAudio:
        self.order.append(request)
        return await super().encode_audio(request)

    @activity.defn
    async def transcode_span(self, request: TranscodeSpan) -> TranscodedSpan:
        self.order.append(request)
        self.waited_with.append(activity.info().priority.priority_key or 0)
        return TranscodedSpan(segments=request.span.segments)

    @property
    def spans_made(self) -> list[TranscodeSpan]:
        return [each for each in self.order if isinstance(each, TranscodeSpan)]

    @property
    def first_starts(self) -> list[int]:
        """Give the videos by their first transcode."""
        return list(dict.fromkeys(span.video_id for span in self.spans_made))


@dataclass
class Line:
    """Videos in line, and the workers that have been started so far."""

    client: Client
    videos: Sequence[Queued]
    stack: AsyncExitStack
    steps: Noting = field(init=False)

    def __post_init__(self) -> None:
        self.steps = Noting(self.videos)

    async def upload(self) -> None:
        start = TranscodeStarter(self.client)
        for video in self.videos:
            assert await start(video.request, f"Video {video.number}") == (Start.STARTED, "")

    async def serve(self, queue: TaskQueue, slots: int = 20, workflows: int | None = None) -> None:
        orchestrates = queue is TaskQueue.ORCHESTRATE
        worker = Worker(
            self.client,
            task_queue=queue,
            workflows=[TranscodeVideo, TranscodeList] if orchestrates else [],
            activities=self.steps.by_queue()[queue],
            interceptors=[FailureInterceptor(first_delay_s=0.05)],
            max_concurrent_activities=slots,
            max_concurrent_workflow_tasks=workflows,
            max_concurrent_workflow_task_polls=workflows or 5,
            disable_eager_activity_execution=True,  # as the real ones
            max_heartbeat_throttle_interval=timedelta(milliseconds=50),
        )
        await self.stack.enter_async_context(worker)

    async def backlog(self, queue: TaskQueue, kind: "TaskQueueType.ValueType" = STEPS) -> Counter[int]:
        """Count what waits in a queue, by priority."""
        found = await self.client.workflow_service.describe_task_queue(
            DescribeTaskQueueRequest(
                namespace=self.client.namespace,
                task_queue=RawQueue(name=queue),
                task_queue_type=kind,
                report_stats=True,
            )
        )
        return Counter({key: stats.approximate_backlog_count for key, stats in found.stats_by_priority_key.items()})

    async def wait_for(self, queue: TaskQueue, expected: Counter[int]) -> None:
        """Wait until exactly this many steps of each priority are in line."""

        async def all_are_in_line() -> bool:
            return await self.backlog(queue) == expected

        await eventually(all_are_in_line, within=60)

    async def first_heard(self, video: Queued) -> datetime:
        """Say when a worker took the first task of a video's workflow."""
        history = await self.client.get_workflow_handle(video.workflow_id).fetch_history()
        return next(
            event.event_time.ToDatetime()
            for event in history.events
            if event.HasField("workflow_task_started_event_attributes")
        )

    async def end(self) -> None:
        for video in self.videos:
            result = await self.client.get_workflow_handle_for(TranscodeVideo.run, video.workflow_id).result()
            assert result.status == "ready"


def waiting_steps(videos: Sequence[Queued]) -> Counter[int]:
    """Count what videos wait for in the encoders' queue: every span of both lists, the sound, the thumbnail."""
    waiting: Counter[int] = Counter()
    for video in videos:
        window = min(video.plan.window, len(video.plan.spans))
        waiting[video.tier.priority] += window * len(video.plan.lists) + len(video.plan.audio) + 1
    return waiting


def unfairness(owners: Sequence[str]) -> int:
    """Say by how many starts, at the worst moment, an owner was behind another although something of theirs waited."""
    left, had, worst = Counter(owners), Counter[str](), 0
    for owner in owners:
        had[owner] += 1
        left[owner] -= 1
        behind = [had[other] for other in left if left[other]]
        worst = max([worst, *(had[owner] - count for count in behind)])
    return worst
