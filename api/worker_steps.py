"""/api/worker/claim, progress, complete, fail: steps for workers that reach only this API."""

from typing import cast

import structlog
from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from api.bodies import ANY_BYTES, small_json
from api.claims import Held, Seal, checked_progress, checked_result
from api.errors import ApiError
from api.gateway import Gateway
from api.open_calls import OpenCalls
from api.openapi import errors, json_body, like
from api.parts import Here, Parts
from api.probed import unbelievable
from api.schemas_gateway import (
    ClaimAsked,
    Claimed,
    CompleteTold,
    FailTold,
    ProgressHeard,
    ProgressTold,
    StepEnded,
)
from api.step_failures import as_failure
from api.worker_auth import ByAnyKey, ByKey, Caller, Welcome, insist_on_welcome, signs_of
from contracts.errors import Drained, FailureKind
from contracts.gateway import CANCELLED, PROGRESS_EVERY_S, SourceLimits
from contracts.media import SourceFacts
from contracts.queues import Pool, TaskQueue
from contracts.states import StepOutcome
from mirror.recorder import StepRecorder

log = structlog.get_logger(__name__)

router = APIRouter(prefix="/api/worker", tags=["workers"])

BY_KEY = like(401, "The key is missing, unknown, expired or revoked", "WORKER_KEY_INVALID", "This key is nobody's.")
NOT_YOURS = like(403, "Another worker's claim, or a disabled worker", "CLAIM_NOT_YOURS", "This is no claim of …")
GONE = like(409, "It ended, or ran out", "CLAIM_EXPIRED", "The claim is gone: it ended, ran out, or its job did. …")
_TOO_LARGE = like(413, "The body is too large", "REQUEST_TOO_LARGE", "This takes at most 65536 bytes of JSON.")
_REFUSED = like(400, "Not now: a cancel that nobody asked for", "CLAIM_REFUSED", "Temporal does not take this of …")
_TOO_MANY = like(429, "It asks too often at once", "TOO_MANY_CLAIMS", "This worker has 16 questions open already.")
NOT_TAKEN_UP = "The worker never said that it has the step."
SHUT_OUT = "The worker was shut out."
_USUAL = BY_KEY | NOT_YOURS | _TOO_LARGE | errors(408, 421, 422, 503)


def gateway_of(request: Request) -> Gateway:
    return cast(Gateway, request.app.state.gateway)


def open_calls_of(request: Request) -> OpenCalls:
    return cast(OpenCalls, request.app.state.open_calls)


def opened(request: Request, claim: str, caller: Caller) -> Held:
    """Open a claim that a worker sent; one that is not its own is a 403."""
    return cast(Seal, request.app.state.seal).open(claim, caller.worker_id)


@router.post(
    "/claim",
    summary="Ask for a step",
    response_model=Claimed,
    responses={204: {"description": "Nothing to do just now: ask again"}, **_USUAL, **_TOO_MANY},
    openapi_extra=json_body(ClaimAsked),
)
async def claim(request: Request, here: Here, caller: Welcome) -> Claimed | Response:
    """Wait for a step of one pool and take it. Whoever hangs up while waiting is given none, and costs no attempt.

    The claim lasts for `heartbeat_timeout_s` after each `progress`. The source is read from `/api/worker/source/…`,
    what is made is put to `/api/worker/output/…`, each with the claim in `X-Worker-Claim`.
    """
    asked = await small_json(request, ClaimAsked)

    async def hung_up() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    queue = Pool(asked.pool).queue
    gateway = gateway_of(request)
    with open_calls_of(request).question(caller.worker_id), signs_of(request).asking(caller.worker_id) as question:
        taken = await gateway.claim(queue, caller.name, asked.wait_s, hung_up, question.left)
    if taken is None and not question.is_shut_out:
        return Response(status_code=204)
    try:
        await insist_on_welcome(request)  # it may have waited for longer than a heartbeat
    except BaseException:  # also when this process stops just now
        if taken is not None:
            await gateway.give_back(taken)
        raise
    if taken is None:  # it was let in again meanwhile
        return Response(status_code=204)
    held, mine = taken.held, taken.held.claim_by(caller.identity)
    recorder = recorder_of(request)
    recorder.started(mine)
    gateway.answered(taken, lambda: recorder.ended(mine, StepOutcome.FAILED, code=Drained.code, sentence=NOT_TAKEN_UP))
    log.info("step_claimed", worker_id=caller.worker_id, job_id=held.job_id, step=held.step_key, attempt=held.attempt)
    seal: Seal = request.app.state.seal
    same = {name: getattr(held, name) for name in Claimed.model_fields if name in Held.model_fields}
    return Claimed(
        **same,
        claim=seal.close(held, caller.worker_id),
        progress_every_s=min(PROGRESS_EVERY_S, held.heartbeat_timeout_s / 3),
        request=taken.request.model_dump(mode="json"),
        limits=SourceLimits(**{name: getattr(here.settings, name) for name in SourceLimits.model_fields}),
    )


@router.post(
    "/progress",
    summary="Tell how far a step is",
    responses=_USUAL | GONE,
    openapi_extra=json_body(ProgressTold),
)
async def progress(request: Request, here: Here, caller: Welcome) -> ProgressHeard:
    """Hold the claim, tell how far it is, and hear whether to stop."""
    told = await small_json(request, ProgressTold)
    held = opened(request, told.claim, caller)
    sane = checked_progress(held, told.progress) if told.progress else None
    stop = await gateway_of(request).beat(held, caller.name, sane)
    recorder_of(request).beat(held.claim_by(caller.identity), sane)
    return ProgressHeard(cancel_requested=stop, claim_expires_in_s=held.heartbeat_timeout_s)


@router.post(
    "/complete",
    summary="Finish a step",
    responses=_USUAL | GONE,
    openapi_extra=json_body(CompleteTold),
)
async def complete(request: Request, here: Here, caller: ByKey) -> StepEnded:
    """Hand in what a step gives. Said twice it is 409: a worker whose answer was lost has nothing more to do."""
    told = await small_json(request, CompleteTold, ANY_BYTES)  # what a probe found may be a long list of tracks
    held = opened(request, told.claim, caller)
    try:
        result = checked_result(held, told.result)
        if isinstance(result, SourceFacts):
            await _check_facts(here, held, result)
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_url=False, include_input=False)) from None
    except ValueError as error:
        raise ApiError(422, "INVALID_RESULT", str(error)) from error
    await gateway_of(request).complete(held, caller.name, result)
    mine, recorder = held.claim_by(caller.identity), recorder_of(request)
    if isinstance(result, SourceFacts):
        recorder.learned(mine, result)
    recorder.ended(mine, StepOutcome.COMPLETED)
    return _ended(held)


@router.post(
    "/fail",
    summary="Give a step up, or back",
    responses=_USUAL | GONE | _REFUSED,
    openapi_extra=json_body(FailTold),
)
async def fail(request: Request, here: Here, caller: ByAnyKey) -> StepEnded:
    """Say why a step ended without a result.

    A disabled worker may, and so may one whose key was revoked or has expired: it is how they hand back what they have.
    Whatever they say, the step goes back to the queue at no attempt.
    """
    told = await small_json(request, FailTold)
    held = opened(request, told.claim, caller)
    mine = held.claim_by(caller.identity)
    gateway, recorder = gateway_of(request), recorder_of(request)
    if told.code == CANCELLED:
        await gateway.cancelled(held, caller.name)
        recorder.ended(mine, StepOutcome.PARTIAL)  # a pause or a cancel: which of the two the job's end tells
        return _ended(held)
    if caller.refusal is None and not caller.is_disabled:
        failure = as_failure(told.code, told.error_message, detail=told.detail, retry_after_s=told.retry_after_s)
    else:
        # It may have been refused a file before it heard why, and say that storage failed.
        failure = as_failure(Drained.code, SHUT_OUT)
    failure = failure.model_copy(update={"attempt": held.attempt})
    await gateway.fail(held, caller.name, failure, told.retry_delay_s)
    recorder.ended(
        mine,
        StepOutcome.FAILED,
        code=failure.code,
        sentence=failure.sentence,
        detail=failure.detail,
        # As of local workers: activities/recording.py.
        will_retry=held.queue == TaskQueue.GPU
        or (failure.kind is FailureKind.RETRYABLE and not mine.is_last and failure.code not in held.gives_up_on),
    )
    return _ended(held)


async def _check_facts(here: Parts, held: Held, facts: SourceFacts) -> None:
    """Insist that a probe found what can be true of this source. Raises ValueError."""
    source = await here.store.stat(held.source_key)
    if why := unbelievable(facts, source.size_bytes if source else -1, here.settings):
        raise ValueError(f"No source is like that: {why}.")


def recorder_of(request: Request) -> StepRecorder:
    return cast(StepRecorder, request.app.state.recorder)


def _ended(held: Held) -> StepEnded:
    return StepEnded(job_id=held.job_id, step_key=held.step_key, accepted=True)
