"""What a workflow is started with."""

from contracts.queues import Turn, fairness_key
from workflows.starting import summary


def test_an_owner_is_their_own_turn_however_long_the_name() -> None:
    assert fairness_key("ana") == "ana"
    assert fairness_key("") is None
    long, longer = fairness_key("ü" * 40), fairness_key("ü" * 41)
    assert long and longer and long != longer
    assert len(long.encode()) <= 64


def test_openings_have_a_turn_of_their_own() -> None:
    assert fairness_key("ana", Turn.OPENING) == "ana/opening"
    assert fairness_key("", Turn.OPENING) == "/opening"
    long = fairness_key("a" * 60, Turn.OPENING)
    assert long and len(long) == 64 and long != fairness_key("a" * 61, Turn.OPENING)


def test_nobody_takes_the_turn_of_somebody_elses_openings_by_their_name() -> None:
    keys = [fairness_key(owner, turn) for owner in ("ana", "ana/opening", "ana/sound") for turn in Turn]
    assert len(set(keys)) == len(keys)
    assert fairness_key("site/ana") == "site/ana"


def test_a_summary_is_cut_between_letters() -> None:
    assert summary("Film") == "Film"
    cut = summary("🎬" * 255)
    assert len(cut.encode()) <= 200 and set(cut) == {"🎬"}
