"""Hands one job to Temporal. Repeating it is the same start, because the workflow's id names the job.

No workflow imports this: it is for those who start them, the API and housekeeping.
"""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

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
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from contracts.errors import MESSAGE_TOO_LARGE
from contracts.ids import workflow_id
from contracts.queues import (
    SEARCH_LIMIT,
    SEARCH_OWNER,
    SEARCH_TIER,
    SEARCH_VIDEO_ID,
    SEARCH_VIDEO_STATUS,
    TaskQueue,
    fairness_key,
)
from contracts.starting import Start
from contracts.states import VideoStatus
from contracts.steps import TranscodeRequest
from workflows.transcode_video import TranscodeVideo

log = structlog.get_logger(__name__)

START_S = 3.0  # an upload's answer waits no longer than this for Temporal
SUMMARY_LIMIT = 200  # bytes; Temporal refuses a summary above 400

_VIDEO_ID = SearchAttributeKey.for_keyword(SEARCH_VIDEO_ID)
_VIDEO_STATUS = SearchAttributeKey.for_keyword(SEARCH_VIDEO_STATUS)
_TIER = SearchAttributeKey.for_int(SEARCH_TIER)
_OWNER = SearchAttributeKey.for_keyword(SEARCH_OWNER)


def summary(title: str) -> str:
    return title.encode()[:SUMMARY_LIMIT].decode(errors="ignore")


def searched_by(request: TranscodeRequest) -> TypedSearchAttributes:
    """Say what people find a job by in Temporal's UI."""
    pairs: list[SearchAttributePair[Any]] = [
        SearchAttributePair(_VIDEO_ID, str(request.video_id)),
        SearchAttributePair(_VIDEO_STATUS, VideoStatus.PENDING.value),
        SearchAttributePair(_TIER, request.tier.priority),
    ]
    if request.owner:
        pairs.append(SearchAttributePair(_OWNER, request.owner[:SEARCH_LIMIT]))
    return TypedSearchAttributes(pairs)


class TranscodeStarter:
    """Starts `TranscodeVideo`; `settled` tells whether a refusal is one for good."""

    def __init__(
        self,
        temporal: Client,
        *,
        heartbeat_timeout_s: float = 30.0,
        critical: tuple[str, ...] = (),
        settled: Callable[[], bool] = lambda: False,
    ) -> None:
        self._temporal, self._settled = temporal, settled
        self._heartbeat_timeout_s, self._critical = heartbeat_timeout_s, critical

    async def __call__(self, request: TranscodeRequest, title: str) -> tuple[Start, str]:
        """Start one job's workflow; never raises for a Temporal that is away."""
        name = workflow_id(request.video_id, request.job_id)
        promises = {"heartbeat_timeout_s": self._heartbeat_timeout_s, "critical": request.critical or self._critical}
        request = request.model_copy(update=promises)
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
                    search_attributes=searched_by(request),
                    priority=Priority(priority_key=request.tier.priority, fairness_key=fairness_key(request.owner)),
                    static_summary=summary(title),
                    rpc_timeout=timedelta(seconds=START_S),
                )
        except WorkflowAlreadyStartedError:
            pass  # it ran and ended before the mirror heard of its start
        except ApplicationError as error:
            if error.type != MESSAGE_TOO_LARGE:
                raise
            log.warning("workflow_not_started", workflow=name, error=error.message)
            return Start.REFUSED, error.message
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
