"""A plan that keeps to an earlier one, so that what is stored fits what will be made beside it. Pure."""

from contracts.media import PlannedAudio, PlannedRendition, TranscodePlan
from contracts.steps import MakePlan
from media.spans import evenly


def continued(fresh: TranscodePlan, request: MakePlan, builds: frozenset[str]) -> TranscodePlan:
    """Keep to the plan before as far as its work is used; leave out what need not be made.

    In an output of its own a job shares only the grid with what is kept. In the same output it goes on with what
    is stored: encoders, settings, build and generations stay. A build that is gone means another init segment, so
    renditions then start anew.
    """
    plan = fresh
    before = request.continues
    if before is not None and request.same_output:
        gone = before.ffmpeg not in builds
        raised = {r.quality for r in fresh.renditions} if gone else set(request.anew)
        known = {rendition.quality: rendition for rendition in before.renditions}
        plan = fresh.model_copy(
            update={
                "renditions": tuple(_raised(known.get(r.quality, r), r.quality in raised) for r in fresh.renditions),
                "audio": _tracks(before, fresh),
                "encoding": fresh.encoding if gone else before.encoding,
                "ffmpeg": fresh.ffmpeg if gone else before.ffmpeg,
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


def _raised(rendition: PlannedRendition, anew: bool) -> PlannedRendition:
    return rendition.model_copy(update={"generation": rendition.generation + 1}) if anew else rendition


def _tracks(before: TranscodePlan, fresh: TranscodePlan) -> tuple[PlannedAudio, ...]:
    """Keep to the rate and the numbers that were promised."""
    known = {track.track: track for track in before.audio}
    return tuple(known.get(track.track, track) for track in fresh.audio)
