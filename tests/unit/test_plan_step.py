"""The plan is made for the workers that will carry it out: with an ffmpeg that they have."""

from typing import Any

import pytest

from activities.planning import PlanSteps
from contracts.ids import JobId
from contracts.plan import Capacity, TranscodePlan
from contracts.steps import MakePlan
from media.planning import PlanOptions
from media.tools import Ffmpeg
from tests.support.media_facts import source, tool, toolbox, track

OURS, SHARED = tool("ours"), tool("shared")
FACTS = source(None, track())


async def planned(
    *builds: tuple[Ffmpeg, int], before: TranscodePlan | None = None, shared: Ffmpeg = SHARED
) -> TranscodePlan:
    """Plan where two ffmpegs are, for workers of which so many have each."""

    async def capacity(job_id: JobId) -> Capacity:
        return Capacity(workers=2, slots=4, builds={each.build: count for each, count in builds})

    steps = PlanSteps(toolbox(OURS, shared), PlanOptions(), capacity)
    pending: dict[str, Any] = {"pending": ("360p", "audio_0"), "again": 1} if before else {}
    return await steps.plan(MakePlan(job_id=1, video_id=1, facts=FACTS, continues=before, **pending))


def makers(plan: TranscodePlan) -> set[str]:
    return {plan.ffmpeg, *(one.ffmpeg for one in plan.renditions), *(one.ffmpeg for one in plan.audio)}


@pytest.mark.parametrize(
    ("builds", "chosen"),
    [
        ((), OURS),  # nobody is known
        (((OURS, 2), (SHARED, 2)), OURS),  # the one that this machine prefers
        (((OURS, 1), (SHARED, 2)), SHARED),  # so that all of them take part
        (((SHARED, 1),), SHARED),  # only remote workers, which have not what is on our PATH
        (((tool("theirs"), 2),), OURS),  # what this machine cannot judge is not planned for
    ],
    ids=["nobody", "all have both", "most have one", "none has ours", "strangers"],
)
async def test_work_is_planned_for_an_ffmpeg_that_most_workers_have(
    builds: tuple[tuple[Ffmpeg, int], ...], chosen: Ffmpeg
) -> None:
    assert makers(await planned(*builds)) == {chosen.build}


async def test_what_no_worker_has_the_ffmpeg_for_moves_though_the_planner_has_it() -> None:
    before = await planned()
    assert makers(before) == {OURS.build}
    after = await planned((SHARED, 2), before=before)
    lowest = next(one for one in after.renditions if one.quality == "360p")
    assert (lowest.ffmpeg, lowest.generation, after.audio[0].ffmpeg) == (SHARED.build, 1, SHARED.build)
    assert await planned((OURS, 1), (SHARED, 2), before=before) == before, "somebody has it still"


@pytest.mark.parametrize(
    "decoders",
    [frozenset({"aac"}), frozenset({"h264"})],
    ids=["pictures", "sound"],
)
async def test_whoever_is_there_just_now_decides_neither_that_a_video_is_refused_nor_that_it_is_silent(
    decoders: frozenset[str],
) -> None:
    """The worker with the able ffmpeg restarts; the one that stays cannot make all of it."""
    lesser = tool("lesser", decoders=decoders)
    plan = await planned((lesser, 1), shared=lesser)
    assert len(plan.audio) == 1 and OURS.build in makers(plan)
    after = await planned((lesser, 1), before=await planned(), shared=lesser)
    assert {one.ffmpeg for one in after.audio} == {OURS.build}
