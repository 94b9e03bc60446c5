"""What a workflow is started with."""

from contracts.queues import fairness_key
from contracts.states import Tier
from workflows.starting import summary


def test_an_owner_is_their_own_turn_however_long_the_name() -> None:
    assert fairness_key("ana") == "ana"
    assert fairness_key("") is None
    long, longer = fairness_key("ü" * 40), fairness_key("ü" * 41)
    assert long and longer and long != longer
    assert len(long.encode()) <= 64


def test_openings_have_a_turn_of_their_own() -> None:
    assert fairness_key("ana", opening=True) == "ana/opening"
    assert fairness_key("", opening=True) == "/opening"
    long = fairness_key("a" * 60, opening=True)
    assert long and len(long) == 64 and long != fairness_key("a" * 61, opening=True)


def test_a_summary_is_cut_between_letters() -> None:
    assert summary("Film") == "Film"
    cut = summary("🎬" * 255)
    assert len(cut.encode()) <= 200 and set(cut) == {"🎬"}


def test_tiers_are_temporal_priorities_lower_first() -> None:
    assert [Tier.VIRAL.priority, Tier.CREATOR.priority, Tier.HOBBY.priority] == [1, 2, 3]
    assert Tier.TRIAL.priority == Tier.FREE.priority == 4
    assert Tier.BULK.priority == 5
