"""What a failure means is decided in one place."""

import errno
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput

from activities.failures import FailureInterceptor, backoff_s, translate
from contracts import errors
from contracts.errors import FailureKind, VlogError
from contracts.ids import JobId, ObjectKey, VideoId
from contracts.steps import Probe, StepFailure

EVERY_ERROR = [
    thing for thing in vars(errors).values() if isinstance(thing, type) and issubclass(thing, VlogError) and thing.code
]


@pytest.mark.parametrize("kind", EVERY_ERROR, ids=lambda error: error.__name__)
def test_only_retryable_errors_are_retried(kind: type[VlogError]) -> None:
    said = translate(kind("A sentence.", detail="x" * 10_000), attempt=1)
    assert said.type == kind.code
    assert said.non_retryable == (kind.kind is not FailureKind.RETRYABLE)
    failure = said.details[0]
    assert isinstance(failure, StepFailure)
    assert failure.sentence == "A sentence." and len(failure.detail) <= 4000
    assert failure.retry_after_s == kind.retry_after_s
    assert kind.kind is FailureKind.LATER or failure.retry_after_s == 0


def test_an_unknown_error_is_retryable_and_shows_no_internals() -> None:
    said = translate(ValueError("/secret/path"), attempt=1)
    assert (said.type, said.non_retryable) == ("INTERNAL_TRANSIENT", False)
    assert "/secret" not in said.message


def test_a_full_disk_that_python_meets_waits_and_costs_no_attempt() -> None:
    said = translate(OSError(errno.ENOSPC, "No space left on device", "/secret/path"), attempt=2)
    assert (said.type, said.non_retryable) == ("SCRATCH_FULL", True)
    assert said.details[0].kind is FailureKind.LATER and "/secret" not in said.message


def test_a_sentence_is_cut_to_what_a_row_holds() -> None:
    said = translate(errors.EncoderCrashed("x" * 2000), attempt=1)
    assert len(said.details[0].sentence) == 500


def test_waiting_doubles_from_five_to_sixty_seconds_with_a_tenth_of_jitter() -> None:
    assert [backoff_s(n, 0) for n in range(1, 7)] == [5, 10, 20, 40, 60, 60]
    assert backoff_s(1, 1) == pytest.approx(5.5) and backoff_s(1, -1) == pytest.approx(4.5)


class Broken:
    """A worker that knows that it is the one to blame, and when it looks at itself next."""

    def went_well(self, queue: str) -> None: ...

    async def is_ours(self, queue: str, error: VlogError, build: str) -> bool:
        return isinstance(error, errors.SourceError)

    def again_in_s(self, queue: str) -> float:
        return 42.0


PROBE = ExecuteActivityInput(
    fn=print,
    args=[Probe(job_id=JobId(1), video_id=VideoId(1), source_key=ObjectKey("uploads/1"))],
    executor=None,
    headers={},
)


class Failing(ActivityInboundInterceptor):
    def __init__(self, error: Exception) -> None:
        self._error = error

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        raise self._error


@pytest.mark.parametrize(
    ("error", "code", "again_in_s"),
    [(errors.SourceUnreadable("No."), "WORKER_BROKEN", 42.0), (errors.EncoderCrashed("No."), "ENCODER_CRASHED", 0.0)],
    ids=["the worker's", "the step's own"],
)
async def test_what_is_the_workers_own_fault_costs_nothing_and_comes_when_it_may_be_mended(
    error: VlogError, code: str, again_in_s: float
) -> None:
    failures = FailureInterceptor()
    failures.health = Broken()
    with pytest.raises(ApplicationError) as caught:
        await ActivityEnvironment().run(failures.intercept_activity(Failing(error)).execute_activity, PROBE)
    failure = caught.value.details[0]
    assert (failure.code, failure.retry_after_s) == (code, again_in_s)
    assert (failure.kind is FailureKind.LATER) == (code == "WORKER_BROKEN")


async def test_a_step_that_was_on_its_way_when_its_queue_was_closed_goes_back_as_it_came() -> None:
    failures, environment = FailureInterceptor(), ActivityEnvironment()
    begun = failures.intercept_activity(Failing(errors.EncoderCrashed("It began.")))

    async def told() -> str:
        with pytest.raises(ApplicationError) as caught:
            await environment.run(begun.execute_activity, PROBE)
        failure = caught.value.details[0]
        return f"{failure.code}: {failure.sentence}"

    failures.hand_back(environment.info.task_queue, "The worker was disabled.")
    assert await told() == "DRAINED: The worker was disabled."
    failures.take_again(environment.info.task_queue)
    failures.hand_back("another", "The worker was disabled.")
    assert await told() == "ENCODER_CRASHED: It began."
    failures.hand_back_now()
    assert await told() == "DRAINED: The worker was stopped."
