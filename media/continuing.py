"""A plan that keeps to an earlier one, so that what is stored fits what will be made beside it. Pure."""

from collections.abc import Sequence

from contracts.plan import IdleGpu, PlannedAudio, PlannedRendition, TranscodePlan
from contracts.steps import MakePlan
from media.routing import GONE, can_go_on
from media.spans import evenly


def continued(
    fresh: TranscodePlan, request: MakePlan, builds: frozenset[str], gpus: Sequence[IdleGpu] = ()
) -> TranscodePlan:
    """Keep to the plan before as far as its work is used; leave out what need not be made.

    In an output of its own a job shares only the grid with what is kept. In the same output it goes on with what
    is stored: encoders, settings, builds and generations stay. A build that is gone means another init segment, so
    what it made starts anew; and all does when the settings change with it. What a GPU began goes on there only if
    one is idle; the rest stays on the CPU.
    """
    plan = fresh
    before = request.continues
    if before is not None and request.same_output:
        here = builds | {""}  # nothing pinned: any will do
        gone = any(r.ffmpeg not in here for r in before.renditions if not r.is_alternative)
        usable = frozenset[str]() if gone and fresh.encoding != before.encoding else here
        known = {rendition.quality: rendition for rendition in before.renditions}
        tracks = {track.track: track for track in before.audio}
        plan = fresh.model_copy(
            update={
                "renditions": tuple(_kept(r, known.get(r.quality), usable, gpus) for r in fresh.renditions),
                "audio": tuple(_track_kept(track, tracks.get(track.track), here) for track in fresh.audio),
                "encoding": fresh.encoding if gone else before.encoding,
            }
        )
    if before is not None and before.grid != fresh.grid:
        spans = evenly(before.grid.segments, min(len(fresh.spans), before.grid.segments))
        plan = plan.model_copy(update={"grid": before.grid, "spans": spans})
    return _without(plan, request.keep) if request.keep else plan


def _without(plan: TranscodePlan, keep: tuple[str, ...]) -> TranscodePlan:
    lists = (tuple(name for name in names if name not in keep) for names in plan.lists)
    return plan.model_copy(
        update={
            "renditions": tuple(r for r in plan.renditions if r.quality not in keep),
            "lists": tuple(names for names in lists if names),
            "audio": tuple(track for track in plan.audio if f"audio_{track.track}" not in keep),
        }
    )


def _kept(
    fresh: PlannedRendition, before: PlannedRendition | None, builds: frozenset[str], gpus: Sequence[IdleGpu]
) -> PlannedRendition:
    if before is None:
        return fresh
    if can_go_on(before, gpus) if before.gpu else before.ffmpeg in builds:
        return before
    return fresh.model_copy(
        update={"generation": before.generation + 1, "descended": GONE if before.gpu else before.descended}
    )


def _track_kept(fresh: PlannedAudio, before: PlannedAudio | None, builds: frozenset[str]) -> PlannedAudio:
    """Keep to the rate and the numbers that were promised."""
    if before is None or before.ffmpeg in builds:
        return before or fresh
    return before.model_copy(update={"ffmpeg": fresh.ffmpeg, "generation": before.generation + 1})
