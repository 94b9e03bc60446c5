"""From a committed job to a running workflow. The job's row is the outbox: nothing is lost while Temporal is away.

Starting is the same start however often it is repeated, because the workflow's id names the job. So
the upload tries once, the loop tries what is left over, and several API processes may do so at once.
"""

import asyncio
import hashlib
import time
from datetime import timedelta
from enum import Enum, auto

import structlog
from temporalio.client import Client
from temporalio.common import (
    Priority,
    SearchAttributeKey,
    SearchAttributePair,
    TypedSearchAttributes,
    WorkflowIDConflictPolicy,
    WorkflowIDReusePolicy,
)
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from contracts.ids import workflow_id
from contracts.queues import SEARCH_TIER, SEARCH_VIDEO_ID, SEARCH_VIDEO_STATUS, TaskQueue
from contracts.states import VideoStatus
from contracts.steps import FailJob, TranscodeRequest
from mirror import reads, writes
from mirror.sessions import Database
from runtime.temporal import ensure_search_attributes
from workflows.transcode_video import TranscodeVideo

log = structlog.get_logger(__name__)

START_S = 3.0  # an upload's answer waits no longer than this for Temporal
EVERY_S = 3.0
# Younger jobs are still in the hands of the request that made them.
OLDER_THAN_S = 5.0
AT_ONCE = 50
# Temporal's frontends learn new search attributes from a cache: until then a refusal may only mean "not yet".
SETTLE_S = 60.0
START_REFUSED = "START_REFUSED"
SUMMARY_LIMIT = 200  # bytes; Temporal refuses a summary above 400
FAIRNESS_KEY_LIMIT = 64  # bytes, Temporal's own limit

_VIDEO_ID = SearchAttributeKey.for_keyword(SEARCH_VIDEO_ID)
_VIDEO_STATUS = SearchAttributeKey.for_keyword(SEARCH_VIDEO_STATUS)
_TIER = SearchAttributeKey.for_int(SEARCH_TIER)


class Start(Enum):
    STARTED = auto()
    AWAY = auto()  # Temporal does not answer: nothing else will start either
    REFUSED = auto()  # Temporal answers and does not take this one, now or ever
    LATER = auto()  # refused, while the reason may still pass


def fairness_key(owner: str) -> str | None:
    """Name whose turn it is; an owner too long for Temporal keeps a turn of their own."""
    if len(owner.encode()) <= FAIRNESS_KEY_LIMIT:
        return owner or None
    return hashlib.sha256(owner.encode()).hexdigest()[:FAIRNESS_KEY_LIMIT]


def summary(title: str) -> str:
    return title.encode()[:SUMMARY_LIMIT].decode(errors="ignore")


class Starter:
    def __init__(
        self,
        database: Database,
        temporal: Client,
        *,
        heartbeat_timeout_s: float = 30.0,
        every_s: float = EVERY_S,
        settle_s: float = SETTLE_S,
    ) -> None:
        self._database, self._temporal = database, temporal
        self._heartbeat_timeout_s, self._every_s, self._settle_s = heartbeat_timeout_s, every_s, settle_s
        self._prepared_at: float | None = None

    async def start(self, request: TranscodeRequest, title: str) -> Start:
        """Start one job's workflow and say so in the mirror; never raises for a Temporal that is away.

        A refusal for good is the job's end: left pending it would be refused for ever, ahead of jobs that can start.
        """
        outcome, why = await self._start_workflow(request, title)
        if outcome is Start.STARTED:
            async with self._database.write() as session:
                await writes.workflow_started(session, request.job_id)
        elif outcome is Start.REFUSED:
            sentence = f"Temporal refused to start the job: {why}"
            end = FailJob(job_id=request.job_id, video_id=request.video_id, code=START_REFUSED, sentence=sentence)
            async with self._database.write() as session:
                await writes.fail_job(session, end)
        return outcome

    async def _start_workflow(self, request: TranscodeRequest, title: str) -> tuple[Start, str]:
        name = workflow_id(request.video_id, request.job_id)
        request = request.model_copy(update={"heartbeat_timeout_s": self._heartbeat_timeout_s})
        try:
            # The SDK connects lazily and retries on its own; this is the limit on all of that together.
            async with asyncio.timeout(START_S):
                await self._temporal.start_workflow(
                    TranscodeVideo.run,
                    request,
                    id=name,
                    task_queue=TaskQueue.ORCHESTRATE,
                    id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                    id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                    search_attributes=TypedSearchAttributes(
                        [
                            SearchAttributePair(_VIDEO_ID, str(request.video_id)),
                            SearchAttributePair(_VIDEO_STATUS, VideoStatus.PENDING.value),
                            SearchAttributePair(_TIER, request.tier.priority),
                        ]
                    ),
                    priority=Priority(priority_key=request.tier.priority, fairness_key=fairness_key(request.owner)),
                    static_summary=summary(title),
                    rpc_timeout=timedelta(seconds=START_S),
                )
        except WorkflowAlreadyStartedError:
            pass  # it ran and ended before the mirror heard of its start
        except RPCError as error:
            log.warning("workflow_not_started", workflow=name, error=str(error))
            told_no = (RPCStatusCode.INVALID_ARGUMENT, RPCStatusCode.FAILED_PRECONDITION)
            if error.status not in told_no:
                return Start.AWAY, error.message
            return Start.REFUSED if self._settled() else Start.LATER, error.message
        except (TimeoutError, RuntimeError) as error:  # RuntimeError: the SDK's word for "cannot connect"
            log.warning("workflow_not_started", workflow=name, error=str(error) or "timeout")
            return Start.AWAY, ""
        return Start.STARTED, ""

    def _settled(self) -> bool:
        return self._prepared_at is not None and time.monotonic() - self._prepared_at >= self._settle_s

    async def start_left_over(self, *, older_than_s: float = OLDER_THAN_S) -> int:
        """Start what was committed and not started, oldest first; stop at once when Temporal is away."""
        async with self._database.read() as session:
            waiting = await reads.unstarted_jobs(session, older_than_s=older_than_s, limit=AT_ONCE)
        started = 0
        for request in waiting:
            async with self._database.read() as session:
                video = await reads.video(session, request.video_id)
            outcome = await self.start(request, video.title if video else request.slug)
            if outcome is Start.AWAY:
                break
            started += outcome is Start.STARTED
        return started

    async def prepare(self) -> None:
        """Register, once, what workflows are searched by: Temporal refuses a start that names an unknown attribute."""
        if self._prepared_at is not None:
            return
        try:
            async with asyncio.timeout(START_S):
                await ensure_search_attributes(self._temporal)
        except (TimeoutError, RuntimeError):
            return
        except RPCError as error:
            # Where an administrator registers them, we may not even ask.
            if error.status not in (RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNIMPLEMENTED):
                return
        self._prepared_at = time.monotonic()

    async def run(self) -> None:
        """Look for left-over jobs until cancelled; whatever goes wrong, look again."""
        while True:
            try:
                await self.prepare()
                started = await self.start_left_over()
                if started:
                    log.info("left_over_jobs_started", jobs=started)
            except Exception as error:
                reason = next(iter(str(error).splitlines()), "") or type(error).__name__  # the rest is SQL
                log.warning("looking_for_left_over_jobs_failed", error=reason)
            await asyncio.sleep(self._every_s)
