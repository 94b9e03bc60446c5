import pytest

from tests.bench.figures import Cost, Round, Way, at_most, evenness, over, quiet, spread


def _round(number: int, a: Cost, b_cpu_s: float, c_wall_s: float, *, foreign_load: bool = False) -> Round:
    by_hand = Cost(wall_s=1, ffmpeg_cpu_s=b_cpu_s)
    one_by_one = Cost(wall_s=c_wall_s, ffmpeg_cpu_s=1)
    return Round(number, {Way.OURS: a, Way.BY_HAND: by_hand, Way.ONE_BY_ONE: one_by_one}, foreign_load)


ROUNDS = [
    _round(1, Cost(wall_s=8, ffmpeg_cpu_s=19, other_cpu_s=1), b_cpu_s=20, c_wall_s=10),
    _round(2, Cost(wall_s=18, ffmpeg_cpu_s=21, other_cpu_s=1), b_cpu_s=20, c_wall_s=20),
    _round(3, Cost(wall_s=7, ffmpeg_cpu_s=23, other_cpu_s=1), b_cpu_s=20, c_wall_s=10),
    _round(4, Cost(wall_s=90, ffmpeg_cpu_s=90, other_cpu_s=90), b_cpu_s=20, c_wall_s=10, foreign_load=True),
]


def test_cpu_is_that_of_the_encoders_and_of_all_else() -> None:
    cost = Cost(wall_s=10, ffmpeg_cpu_s=19, other_cpu_s=1)
    assert (cost.cpu_s, cost.other_share) == (20, 0.05)


def test_a_cost_of_nothing_has_no_share() -> None:
    assert Cost(wall_s=0, ffmpeg_cpu_s=0).other_share == 0


def test_ratios_are_computed_inside_each_round() -> None:
    # The ratio of the medians would be 8/10: the slow round is slow for both.
    ratio = over(ROUNDS, Round.wall_ratio)
    assert (ratio.median, ratio.least, ratio.most, ratio.count) == (0.8, 0.7, 0.9, 3)
    assert over(ROUNDS, Round.cpu_ratio).median == pytest.approx(1.1)


def test_rounds_beside_foreign_load_are_not_counted() -> None:
    assert [one.number for one in quiet(ROUNDS)] == [1, 2, 3]
    assert over(ROUNDS, Round.other_share).most == pytest.approx(0.05)


def test_the_median_of_an_even_number_lies_between_the_middle_two() -> None:
    assert spread([4, 1, 2, 3]).median == 2.5


def test_no_values_have_no_median() -> None:
    with pytest.raises(ValueError, match="no values"):
        spread([])


@pytest.mark.parametrize(
    ("values", "shown"), [([1.25], "1.250"), ([1, 2, 3], "2.000 [1.000–3.000]")], ids=["alone", "several"]
)
def test_a_spread_shows_its_extremes_when_it_has_some(values: list[float], shown: str) -> None:
    assert spread(values).show() == shown


@pytest.mark.parametrize(("limit", "met"), [(0.8, True), (0.79, False)])
def test_a_target_is_judged_by_the_median(limit: float, met: bool) -> None:
    verdict = at_most("wall a/c", over(ROUNDS, Round.wall_ratio), limit)
    assert verdict.met is met
    assert ("not met" in str(verdict)) is not met


def test_a_share_is_shown_in_percent_and_judged_as_it_is() -> None:
    verdict = at_most("all but ffmpeg", spread([0.0312] * 5), 0.05, form=".1f", scale=100, unit=" %")
    assert str(verdict) == "met: all but ffmpeg ≤ 5 %; measured 3.1 % [3.1–3.1]"


def test_a_verdict_on_too_few_rounds_says_so() -> None:
    assert str(at_most("CPU a/b", spread([1.1]), 1.12)).endswith("measured 1.100 in 1 of the 5 rounds it takes")


@pytest.mark.parametrize(("costs", "strays"), [([10, 10, 10], 0), ([9, 10, 11], 0.1), ([8, 12], 0.2)])
def test_evenness_is_half_the_range_over_its_middle(costs: list[float], strays: float) -> None:
    assert evenness(costs) == pytest.approx(strays)


@pytest.mark.parametrize("costs", [[], [0, 1]])
def test_a_minute_that_costs_nothing_was_not_measured(costs: list[float]) -> None:
    with pytest.raises(ValueError, match="more than nothing"):
        evenness(costs)
