"""How long a step that is told to come later stays away: by how often it was told so for the same reason."""

from datetime import UTC, datetime, timedelta

import pytest
from temporalio import workflow

from contracts.errors import Drained, FailureKind, GpuBusy, ScratchFull, StorageAway, VlogError, WorkerFull
from contracts.queues import TaskQueue
from contracts.steps import StepFailure
from workflows import options
from workflows.patience import SHORTEST, Patience


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


def test_a_busy_gpu_is_waited_for_as_long_as_it_has_to_begin_and_a_limit_that_is_over_is_a_short_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    monkeypatch.setattr(workflow, "now", lambda: now)
    patience = Patience(options.Promise(TaskQueue.GPU, limit_s=600, start_within_s=60))
    assert patience.left() == timedelta(seconds=60)
    now += timedelta(seconds=40)
    assert patience.left() == timedelta(seconds=20)
    assert patience.wait_s(told(GpuBusy, 10)) == 10
    assert patience.wait_s(told(GpuBusy, 100)) is None, "half of its time would be longer than what is left of it"
    # In a pause, or while nobody runs workflows: a negative limit Temporal refuses for ever.
    now += timedelta(hours=1)
    assert patience.left() == SHORTEST
    patience.renew()
    assert patience.left() == timedelta(seconds=60)


def test_a_storage_that_is_away_is_waited_for_without_end_on_a_gpu_too_but_not_by_what_only_removes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    monkeypatch.setattr(workflow, "now", lambda: now)
    away = told(StorageAway, 15)
    gpu = Patience(options.Promise(TaskQueue.GPU, limit_s=600, start_within_s=60))
    gpu.left()
    now += timedelta(hours=1)  # it was encoding
    assert [gpu.wait_s(away) for _ in range(options.WAITS_AS_TOLD + 1)] == [*[15.0] * options.WAITS_AS_TOLD, 30.0]
    assert gpu.left() == timedelta(seconds=60)
    removal = Patience(options.REMOVE)
    assert [removal.wait_s(away), removal.wait_s(away)] == [15, None]
    assert removal.wait_s(told(Drained, 0)) == 0
