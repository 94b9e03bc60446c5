"""What pools are made of, and what a process keeps while they are closed and opened again."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from activities.planning import PlanSteps
from contracts.queues import Pool
from media.planning import PlanOptions
from tests.integration.workers.queueing import parts_of
from tests.support.media_facts import toolbox
from workers import build
from workers.build import steps


def test_a_pool_that_is_opened_anew_goes_on_with_the_same_webhook_client(tmp_path: Path) -> None:
    parts = parts_of(tmp_path, 3, toolbox())
    opened = [steps(pool, parts) for pool in (Pool.IO, Pool.ORCHESTRATE, Pool.IO)]
    keepers = {getattr(step, "__self__", None) for found in opened for step in found}
    assert [keeper for keeper in keepers if keeper is parts.webhooks] == [parts.webhooks]
    assert len([keeper for keeper in keepers if type(keeper) is type(parts.webhooks)]) == 1


def test_a_gpu_that_was_silent_for_twice_the_heartbeat_interval_is_not_idle_and_has_as_long_to_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seed 000's rule: the two waits are one number."""
    told: dict[str, float] = {}

    def idle_gpus(_database: object, *, heard_within_s: float) -> None:
        told["silent"] = heard_within_s

    def plan_steps(tools: Any, options: PlanOptions, *others: Any) -> PlanSteps:
        told["begin"] = options.gpu_start_s
        return PlanSteps(tools, options, *others)

    monkeypatch.setattr(build, "IdleGpus", idle_gpus)
    monkeypatch.setattr(build, "PlanSteps", plan_steps)
    parts = parts_of(tmp_path, 3, toolbox())
    steps(Pool.IO, replace(parts, settings=parts.settings.model_copy(update={"worker_heartbeat_interval": 7.0})))
    assert told == {"silent": 14.0, "begin": 14.0}
