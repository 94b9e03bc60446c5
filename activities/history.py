"""A job's story as Temporal tells it: histories of its workflow and its children, and what is under way now."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.common.v1 import Payloads
from temporalio.api.enums.v1 import EventType
from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import ActivityTaskScheduledEventAttributes, HistoryEvent
from temporalio.client import Client
from temporalio.exceptions import ApplicationError, TimeoutError
from temporalio.service import RPCError, RPCStatusCode

from activities.chores.ending import ending_of
from activities.chores.knowing import KnownWorkflow, PendingStep
from contracts.end_steps import FailJob, Finalize, Publish
from contracts.media import SourceFacts
from contracts.plan import TranscodePlan
from contracts.states import StepOutcome, Tier
from contracts.steps import SetPriority, StepFailure, StepProgress, StepRequest, TranscodeRequest
from mirror.claims import DEFAULT_HEARTBEAT_TIMEOUT_S, StepClaim
from mirror.rebuilding import JobStory, ToldStep
from mirror.step_events import LATER_CODES
from mirror.writes_steps import StepEnd


@dataclass(frozen=True)
class StepType:
    request: type[StepRequest]
    result: Any


def step_types(steps: Iterable[Callable[..., Any]]) -> dict[str, StepType]:
    """Read off the steps that workers serve what each is asked and what it answers."""
    found = {}
    for step in steps:
        hints = inspect.get_annotations(step, eval_str=True)
        found[step.__name__] = StepType(hints["request"], hints.get("return"))
    return found


@dataclass
class _Seen:
    """What the events said of one activity."""

    asked: ActivityTaskScheduledEventAttributes
    scheduled_at: datetime
    attempt: int = 1
    worker: str = ""
    started_at: datetime | None = None
    ended: HistoryEvent | None = None


class HistoryReader:
    def __init__(self, client: Client, types: Mapping[str, StepType]) -> None:
        self._client, self._types = client, types

    async def story(self, workflow_id: str, known: KnownWorkflow) -> JobStory:
        """Tell a job's story up to now."""
        handle = self._client.get_workflow_handle(workflow_id)
        runs = await self._runs(workflow_id)
        first = runs[0][0]
        began = first.workflow_execution_started_event_attributes
        [request] = await self._client.data_converter.decode(began.input.payloads, [TranscodeRequest])
        tier, paused_at = await self._commanded(runs[-1])
        for child in dict.fromkeys(name for events in runs for name in _children(events)):
            runs += await self._runs(child)
        seen = [one for events in runs for one in _activities(events)]
        pending = {step.activity_id: step for step in known.pending}
        steps, published = [], None
        ending: Finalize | FailJob | None = None
        ended_at = None
        for one in seen:
            told = await self._told(one, pending.get(one.asked.activity_id))
            if told is None:
                continue
            asked, step = told
            steps.append(step)
            if step.end is not None and step.end.outcome is StepOutcome.COMPLETED:
                published = asked if isinstance(asked, Publish) else published
                if isinstance(asked, Finalize | FailJob) and ending is None:
                    ending, ended_at = asked, step.heard_at
        if ending is None and not known.is_running:
            ending = await ending_of(self._client, workflow_id, request.job_id, request.video_id)
            ended_at = known.closed_at
        summary = await (await handle.describe()).static_summary()
        return JobStory(
            request=request,
            workflow_id=workflow_id,
            title=summary or "",
            started_at=_time(first.event_time),
            tier=tier,
            paused_at=paused_at,
            steps=tuple(steps),
            published=published,
            ending=ending,
            ended_at=ended_at,
        )

    async def _runs(self, workflow_id: str) -> list[list[HistoryEvent]]:
        """Read the last run of a workflow and those that it went on from, the first one first."""
        runs: list[list[HistoryEvent]] = []
        run_id: str | None = None
        while run_id or not runs:
            handle = self._client.get_workflow_handle(workflow_id, run_id=run_id)
            try:
                events = [event async for event in handle.fetch_history_events()]
            except RPCError as error:
                # An earlier run may be forgotten already: it ended long before the last one.
                if not runs or error.status is not RPCStatusCode.NOT_FOUND:
                    raise
                break
            runs.insert(0, events)
            run_id = events[0].workflow_execution_started_event_attributes.continued_execution_run_id
        return runs

    async def _commanded(self, events: list[HistoryEvent]) -> tuple[Tier, datetime | None]:
        """Tell what people have said to the run that is the last: how it waits, and since when it is paused."""
        began = events[0].workflow_execution_started_event_attributes
        [request] = await self._client.data_converter.decode(began.input.payloads, [TranscodeRequest])
        tier, paused_at = request.tier, _time(events[0].event_time) if request.paused else None
        for event in events:
            if event.event_type != EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED:
                continue
            said = event.workflow_execution_update_accepted_event_attributes.accepted_request.input
            match said.name:
                case "pause":
                    paused_at = paused_at or _time(event.event_time)
                case "resume":
                    paused_at = None
                case "set_priority":
                    [wish] = await self._client.data_converter.decode(said.args.payloads, [SetPriority])
                    tier = wish.tier
        return tier, paused_at

    async def _told(self, seen: _Seen, pending: PendingStep | None) -> tuple[StepRequest, ToldStep] | None:
        """Tell of the last attempt of one activity; None when nobody has begun it, or it is no step of ours."""
        kind = self._types.get(seen.asked.activity_type.name)
        if kind is None:
            return None
        [request] = await self._client.data_converter.decode(seen.asked.input.payloads, [kind.request])
        if seen.ended is not None:
            if seen.started_at is None:
                return None
            end, learned = await self._end(seen.ended, kind)
            heard_at = _time(seen.ended.event_time)
            step = ToldStep(_claim(seen, request), seen.worker, heard_at, end=end, learned=learned)
            return request, step
        running = await self._pending(seen, request, pending) if pending else None
        return (request, running) if running else None

    async def _pending(self, seen: _Seen, request: StepRequest, pending: PendingStep) -> ToldStep | None:
        info = pending.info
        seen.worker, seen.attempt = info.last_worker_identity, pending.attempt
        if not info.HasField("last_started_time"):
            return None
        seen.started_at = _time(info.last_started_time)
        if pending.is_held:
            progress = await self._progress(info.heartbeat_details)
            beat = _time(info.last_heartbeat_time) if info.HasField("last_heartbeat_time") else seen.started_at
            return ToldStep(_claim(seen, request), seen.worker, beat, progress=progress)
        # It waits for its next attempt: the one before has failed, or was lost.
        seen.attempt -= 1
        end = await self._failure(info.last_failure, will_retry=True)
        return ToldStep(_claim(seen, request), seen.worker, seen.started_at, end=end)

    async def _end(
        self, event: HistoryEvent, kind: StepType
    ) -> tuple[StepEnd, tuple[SourceFacts | TranscodePlan, ...]]:
        match event.event_type:
            case EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
                learned: tuple[Any, ...] = ()
                if kind.result in (SourceFacts, TranscodePlan):
                    payloads = event.activity_task_completed_event_attributes.result.payloads
                    learned = tuple(await self._client.data_converter.decode(payloads, [kind.result]))
                return StepEnd(StepOutcome.COMPLETED), learned
            case EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED:
                return await self._failure(event.activity_task_failed_event_attributes.failure), ()
            case EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
                return StepEnd(StepOutcome.LOST), ()
            case _:  # a pause or a cancel: which of the two only the job's end tells
                return StepEnd(StepOutcome.PARTIAL), ()

    async def _failure(self, failure: Failure, *, will_retry: bool = False) -> StepEnd:
        error = await self._client.data_converter.decode_failure(failure)
        if isinstance(error, TimeoutError) or not isinstance(error, ApplicationError):
            return StepEnd(StepOutcome.LOST)
        first = error.details[0] if error.details else None
        known = isinstance(first, dict) and first.keys() >= {"code", "kind", "sentence"}
        said = StepFailure.model_validate(first) if known else None
        code = said.code if said else error.type
        outcome = StepOutcome.PARTIAL if code in LATER_CODES else StepOutcome.FAILED
        sentence = said.sentence if said else error.message
        return StepEnd(outcome, code, sentence, said.detail if said else None, will_retry)

    async def _progress(self, details: Payloads) -> StepProgress | None:
        if not details.payloads:
            return None
        [progress] = await self._client.data_converter.decode(details.payloads[:1], [StepProgress])
        return progress if isinstance(progress, StepProgress) else None


def _claim(seen: _Seen, request: StepRequest) -> StepClaim:
    beats_s = _seconds(seen.asked.heartbeat_timeout)
    assert seen.started_at is not None
    return StepClaim(
        job_id=request.job_id,
        video_id=request.video_id,
        step=request.step,
        step_key=request.step_key,
        qualities=request.step_qualities,
        span=request.step_span,
        generation=request.generation,
        tries_before=request.tries_before,
        attempt=seen.attempt,
        max_attempts=seen.asked.retry_policy.maximum_attempts,
        queue=seen.asked.task_queue.name,
        scheduled_at=seen.scheduled_at,
        started_at=seen.started_at,
        heartbeat_timeout_s=beats_s or DEFAULT_HEARTBEAT_TIMEOUT_S,
    )


def _activities(events: Iterable[HistoryEvent]) -> list[_Seen]:
    seen: dict[int, _Seen] = {}
    for event in events:
        match event.event_type:
            case EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
                asked = event.activity_task_scheduled_event_attributes
                seen[event.event_id] = _Seen(asked, _time(event.event_time))
            case EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED:
                began = event.activity_task_started_event_attributes
                one = seen[began.scheduled_event_id]
                one.attempt, one.worker, one.started_at = began.attempt, began.identity, _time(event.event_time)
            case EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
                seen[event.activity_task_completed_event_attributes.scheduled_event_id].ended = event
            case EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED:
                seen[event.activity_task_failed_event_attributes.scheduled_event_id].ended = event
            case EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
                seen[event.activity_task_timed_out_event_attributes.scheduled_event_id].ended = event
            case EventType.EVENT_TYPE_ACTIVITY_TASK_CANCELED:
                seen[event.activity_task_canceled_event_attributes.scheduled_event_id].ended = event
    return list(seen.values())


def _children(events: Iterable[HistoryEvent]) -> list[str]:
    started = EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED
    return [
        event.child_workflow_execution_started_event_attributes.workflow_execution.workflow_id
        for event in events
        if event.event_type == started
    ]


def _time(at: Timestamp) -> datetime:
    return at.ToDatetime(tzinfo=UTC)


def _seconds(length: Duration) -> float:
    return length.ToTimedelta().total_seconds()
