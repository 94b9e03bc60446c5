"""How long a step that is told to come later stays away: by how often it was told so for the same reason."""

import pytest

from contracts.errors import Drained, FailureKind, ScratchFull, VlogError, WorkerFull
from contracts.queues import TaskQueue
from contracts.steps import StepFailure
from workflows import options
from workflows.patience import Patience


def told(error: type[VlogError], retry_after_s: float) -> StepFailure:
    return StepFailure(code=error.code, kind=FailureKind.LATER, sentence="Later.", retry_after_s=retry_after_s)


@pytest.fixture
def patience() -> Patience:
    return Patience(options.Promise(TaskQueue.CPU, limit_s=60))


def test_what_is_told_for_one_reason_does_not_lengthen_the_wait_for_another(patience: Patience) -> None:
    waits = [patience.wait_s(told(WorkerFull, 5)) for _ in range(options.WAITS_AS_TOLD + 1)]
    assert waits == [*[5.0] * options.WAITS_AS_TOLD, 10.0]
    assert patience.wait_s(told(ScratchFull, 5)) == 5
    assert patience.put_off == {WorkerFull.code: options.WAITS_AS_TOLD + 1, ScratchFull.code: 1}


def test_a_drain_begins_the_count_anew_and_is_no_wait(patience: Patience) -> None:
    for _ in range(20):
        assert patience.wait_s(told(Drained, 0)) == 0
    assert patience.put_off == {} and not patience.is_long
    patience.wait_s(told(ScratchFull, 5))
    patience.wait_s(told(Drained, 0))
    assert patience.put_off == {}
