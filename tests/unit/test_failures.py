"""What a failure means is decided in one place."""

import asyncio
import errno
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput

from activities import outage
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


def asked(*, attempts: int, left_s: float = 600) -> ActivityEnvironment:
    environment = ActivityEnvironment()
    environment.info = replace(
        environment.info,
        retry_policy=RetryPolicy(maximum_attempts=attempts),
        started_time=datetime.now(UTC),
        start_to_close_timeout=timedelta(seconds=left_s),
    )
    return environment


class Disk:
    """A storage that is away for so many looks."""

    def __init__(self, away: int) -> None:
        self.away = away

    async def check(self) -> None:
        self.away -= 1
        if self.away >= 0:
            raise errors.StorageUnavailable("Storage did not answer.")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outage, "KEEP_S", 0.1)
    monkeypatch.setattr(outage, "LOOK_EVERY_S", 0.01)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    "error",
    [errors.StorageUnavailable("No."), errors.ObjectMissing("No."), errors.SourceUnreadable("No."), OSError(5, "EIO")],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize(("away", "least_s", "most_s"), [(2, 1, 1), (1000, 13, 17)], ids=["for a moment", "for long"])
async def test_whatever_fails_while_the_storage_is_away_waits_for_it_and_is_nobodys_fault(
    error: Exception, away: int, least_s: float, most_s: float
) -> None:
    failures = FailureInterceptor()
    failures.health, failures.storage = Broken(), Disk(away).check
    with pytest.raises(ApplicationError) as caught:
        await asked(attempts=3).run(failures.intercept_activity(Failing(error)).execute_activity, PROBE)
    failure = caught.value.details[0]
    assert (failure.code, failure.kind) == ("STORAGE_AWAY", FailureKind.LATER)
    assert failure.sentence == "The storage is away: Storage did not answer."
    assert least_s <= failure.retry_after_s <= most_s


async def test_a_step_is_not_kept_until_its_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """To be cut off would cost the try that waiting is to save."""
    monkeypatch.setattr(outage, "KEEP_S", 600.0)
    failures = FailureInterceptor()
    failures.storage = Disk(1000).check
    failing = failures.intercept_activity(Failing(errors.StorageUnavailable("No.")))
    with pytest.raises(ApplicationError) as caught:
        async with asyncio.timeout(5):
            await asked(attempts=3, left_s=outage.CHECK_S + outage.LOOK_EVERY_S).run(failing.execute_activity, PROBE)
    assert caught.value.details[0].code == "STORAGE_AWAY"


@pytest.mark.parametrize(
    ("attempts", "away", "error"),
    [
        (3, 0, errors.StorageUnavailable("One file cannot be read.")),
        (0, 1000, errors.StorageUnavailable("It is tried until it is done.")),
        (3, 1000, errors.ScratchFull("It waits already.")),
    ],
)
async def test_one_bad_file_is_a_failure_and_what_is_tried_for_ever_or_waits_needs_no_help(
    attempts: int, away: int, error: VlogError
) -> None:
    failures = FailureInterceptor()
    failures.storage = Disk(away).check
    with pytest.raises(ApplicationError) as caught:
        await asked(attempts=attempts).run(failures.intercept_activity(Failing(error)).execute_activity, PROBE)
    assert caught.value.type == error.code


async def test_a_storage_that_never_answers_is_away_and_a_full_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outage, "CHECK_S", 0.01)
    monkeypatch.setattr(outage, "KEEP_S", 0.0)

    async def silent() -> None:
        await asyncio.sleep(60)

    async def full() -> None:
        raise errors.ScratchFull("The storage disk is full.")

    assert await ActivityEnvironment().run(outage.outage, silent) is not None
    assert await ActivityEnvironment().run(outage.outage, full) is None


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
