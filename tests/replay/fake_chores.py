"""Chores that only answer: one finds something to do, one cannot reach its neighbour, the others have nothing."""

from collections.abc import Callable
from typing import Any

from temporalio import activity

from contracts.errors import StorageUnavailable
from contracts.housekeeping import ChoreDone, KeepHouse
from workflows.housekeeping import CHORES

BUSY, AWAY = CHORES[0].__name__, CHORES[-1].__name__


def fake_chores() -> list[Callable[..., Any]]:
    return [_answering(chore.__name__) for chore in CHORES]


def _answering(name: str) -> Callable[..., Any]:
    @activity.defn(name=name)
    async def chore(request: KeepHouse) -> ChoreDone:
        if name == AWAY:
            raise StorageUnavailable("The storage does not answer.")
        return ChoreDone(count=2 if name == BUSY else 0)

    return chore
