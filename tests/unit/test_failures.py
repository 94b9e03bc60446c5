"""What a failure means is decided in one place."""

import errno

import pytest

from activities.failures import backoff_s, translate
from contracts import errors
from contracts.errors import FailureKind, VlogError
from contracts.steps import StepFailure

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
