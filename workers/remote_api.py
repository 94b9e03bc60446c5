"""What a remote worker says to the API, and what it is answered."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx

from contracts.gateway import MOST_WAIT_S, SourceLimits
from contracts.message import Message
from contracts.queues import Pool
from contracts.steps import StepFailure, StepProgress
from storage.http_calls import WorkerCalls, understanding

PROGRESS_S = 5.0


class ClaimedStep(Message):
    """A step to be done, and the claim to be sent with everything about it."""

    claim: str
    activity: str
    job_id: int
    step_key: str
    generation: int
    attempt: int
    queue: str
    workflow_id: str
    started_at: datetime
    heartbeat_timeout_s: float
    progress_every_s: float
    request: dict[str, Any]
    limits: SourceLimits | None = None  # none: an API that is older than this


@dataclass(frozen=True)
class Heard:
    """What a worker's sign of life was answered."""

    every_s: float  # until it is to say so again
    pools_aside: frozenset[str]


@dataclass(frozen=True)
class RemoteApi:
    """Whatever else answers in the API's place raises NotOurs."""

    calls: WorkerCalls

    async def beat(self, status: str, about: dict[str, Any] | None = None) -> Heard:
        """Say that this worker lives, and what is new about it."""
        answer = await self._post("heartbeat", {"status": status, **(about or {})})
        with understanding():
            said = answer.json()
            return Heard(float(said["heartbeat_interval"]), frozenset(said.get("pools_aside", ())))

    async def claim(self, pool: Pool, wait_s: float) -> ClaimedStep | None:
        answer = await self._post(
            "claim", {"pool": pool.value, "wait_s": wait_s}, timeout=httpx.Timeout(20.0, read=MOST_WAIT_S + 15.0)
        )
        with understanding():
            return None if answer.status_code == 204 else ClaimedStep.model_validate_json(answer.content)

    async def progress(self, claim: str, progress: StepProgress | None, within_s: float = PROGRESS_S) -> bool:
        """Hold a claim; True when the step is to be stopped."""
        told = progress.model_dump(mode="json") if progress else None
        timeout = httpx.Timeout(within_s, connect=PROGRESS_S)
        answer = await self._post("progress", {"claim": claim, "progress": told}, timeout=timeout)
        with understanding():
            return bool(answer.json()["cancel_requested"])

    async def complete(self, claim: str, result: Message) -> None:
        await self._end("complete", {"claim": claim, "result": result.model_dump(mode="json")})

    async def fail(self, claim: str, failure: StepFailure, retry_delay_s: float | None = None) -> None:
        body = {
            "claim": claim,
            "code": failure.code,
            "error_message": failure.sentence,
            "detail": failure.detail,
            "retry_after_s": failure.retry_after_s,
            "retry_delay_s": retry_delay_s,
        }
        await self._end("fail", body)

    async def cancelled(self, claim: str) -> None:
        await self._end("fail", {"claim": claim, "code": "CANCELLED"})

    async def _end(self, what: str, body: dict[str, Any]) -> None:
        answer = await self._post(what, body)
        with understanding():  # a page that was taken for a yes would cost the step all that it made
            if answer.json()["accepted"] is not True:
                raise ValueError("somebody else's word")

    async def _post(self, what: str, body: dict[str, Any], **how: Any) -> httpx.Response:
        return await self.calls.ask("POST", f"/api/worker/{what}", json=body, **how)
