"""Who waits for whom: the documented cases, and those that the document leaves open."""

import pytest

from contracts.states import Tier
from contracts.tiers import resolve_task_priority, resolve_tier


@pytest.mark.parametrize(
    ("tier", "is_paid", "priority"),
    [("viral", True, 1), ("creator", True, 2), ("hobby", True, 3), ("trial", False, 4), ("free", False, 4)],
)
def test_the_documented_tiers_are_temporal_priorities_lower_first(tier: str, is_paid: bool, priority: int) -> None:
    assert resolve_task_priority(tier, is_paid) == priority
    assert Tier(tier).priority == priority


@pytest.mark.parametrize("tier", ["viral", "creator", "hobby", "trial", "free"])
def test_what_is_not_paid_for_waits_with_the_free_ones(tier: str) -> None:
    assert resolve_task_priority(tier, False) == 4


def test_a_bulk_retranscode_is_behind_everybody_whoever_pays() -> None:
    assert {resolve_task_priority("bulk", paid) for paid in (True, False)} == {5}
    assert resolve_tier("bulk", True) is Tier.BULK


@pytest.mark.parametrize("tier", ["", None, "platinum", "VIRAL "])
def test_a_tier_that_nobody_knows_goes_before_nobody(tier: str | None) -> None:
    assert resolve_task_priority(tier, True) == 4


def test_every_tier_has_a_priority_that_temporal_takes() -> None:
    assert {tier.priority for tier in Tier} == {1, 2, 3, 4, 5}


def test_a_trial_stays_a_trial() -> None:
    assert resolve_tier("trial", False) is Tier.TRIAL
