"""Which pools a worker asks for work: by the mirror's word, and by what it knows of itself."""

from collections.abc import Collection

import pytest

from contracts.queues import Pool
from contracts.states import WorkerStanding
from workers.gate import Gate

POOLS = (Pool.ORCHESTRATE, Pool.CPU, Pool.GPU)
ASIDE = {Pool.GPU: "The worker set itself aside: no device."}


class Serving:
    """Remembers what it was last told: nothing, until then."""

    def __init__(self) -> None:
        self.pools: set[Pool] = set()
        self.why = ""

    def allow(self, pools: Collection[Pool], why: str = "") -> None:
        self.pools, self.why = set(pools), why


@pytest.fixture
def serving() -> Serving:
    return Serving()


def gate_of(serving: Serving) -> Gate:
    return Gate(POOLS, serving)  # type: ignore[arg-type]


def test_nothing_is_asked_for_before_the_mirror_has_welcomed_it(serving: Serving) -> None:
    gate = gate_of(serving)
    gate.set_aside(ASIDE)
    assert serving.pools == set()
    gate.heard(WorkerStanding.WELCOME)
    assert serving.pools == {Pool.ORCHESTRATE, Pool.CPU} and serving.why == ASIDE[Pool.GPU]


@pytest.mark.parametrize("standing", [standing for standing in WorkerStanding if standing != WorkerStanding.WELCOME])
def test_whoever_is_not_welcome_any_more_lets_go_of_everything_until_it_is(
    serving: Serving, standing: WorkerStanding
) -> None:
    gate = gate_of(serving)
    gate.heard(WorkerStanding.WELCOME)
    assert serving.pools == set(POOLS)
    gate.heard(standing)
    assert (serving.pools, serving.why) == (set(), f"The worker was {standing}.")
    gate.set_aside(ASIDE)
    assert serving.pools == set(), "whatever it finds out about itself meanwhile"
    gate.heard(WorkerStanding.WELCOME)
    assert serving.pools == {Pool.ORCHESTRATE, Pool.CPU}
    gate.set_aside({})
    assert serving.pools == set(POOLS)
