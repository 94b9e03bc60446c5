"""Which renditions a GPU makes (docs/decisions/0014-which-renditions-a-gpu-makes.md). Pure: who is idle is told."""

from collections.abc import Collection, Sequence

from contracts.plan import IdleGpu, PlannedRendition, TranscodePlan
from contracts.states import Codec
from contracts.steps import MissingRendition

GONE = "The GPU that began it is busy or gone."
NOT_WHOLE = "What the GPU made is not whole."


def routed(
    plan: TranscodePlan, gpus: Sequence[IdleGpu], names: Collection[str], begun: Collection[str] = ()
) -> TranscodePlan:
    """Give some renditions to idle GPUs, the largest first, one to each free slot; the rest is the CPU's at once.

    Not the lowest rung beside others: by it the video begins to play, and a GPU that only looks idle would hold
    that up. What an earlier job has begun (`begun`) stays where it is, and what descended does not rise again.
    """
    free = [(gpu, slot) for gpu in gpus for slot in range(min(gpu.slots, len(plan.renditions)))]
    for mine in (r for r in plan.renditions if r.gpu and r.quality in {*names, *begun}):
        _take(free, mine.codec)
    rungs = [r for r in plan.renditions if not r.is_alternative]
    lowest = plan.lowest.quality if len(rungs) > 1 else ""
    stay = {lowest, *begun}
    wanted = [
        r for r in plan.renditions if r.quality in names and r.quality not in stay and not r.gpu and not r.descended
    ]
    given: dict[str, PlannedRendition] = {}
    for rendition in sorted(wanted, key=lambda r: r.width * r.height, reverse=True):
        if encoder := _take(free, rendition.codec):
            given[rendition.quality] = rendition.model_copy(update={"gpu": True, "encoder": encoder, "ffmpeg": ""})
    return plan.model_copy(update={"renditions": tuple(given.get(r.quality, r) for r in plan.renditions)})


def _take(free: list[tuple[IdleGpu, int]], codec: Codec) -> str:
    """Take a free slot; of those that can, on the GPU that can do the least else. Name its encoder; empty: none."""
    able = [place for place in free if codec in place[0].encoders]
    if not able:
        return ""
    chosen = min(able, key=lambda place: len(place[0].encoders))
    free.remove(chosen)
    return chosen[0].encoders[codec]


def can_go_on(rendition: PlannedRendition, gpus: Sequence[IdleGpu]) -> bool:
    """Tell whether what a GPU began can be ended by one that is idle now."""
    return any(gpu.slots and gpu.encoders.get(rendition.codec) == rendition.encoder for gpu in gpus)


def descended(before: TranscodePlan, plan: TranscodePlan, lost: MissingRendition | None) -> TranscodePlan:
    """Say why renditions that were a GPU's before are the CPU's now."""
    were = {r.quality for r in before.renditions if r.gpu}
    why = {lost.name: lost.sentence} if lost else {}
    fell = {r.quality: why.get(r.quality, NOT_WHOLE) for r in plan.renditions if r.quality in were and not r.gpu}
    if not fell:
        return plan
    told = (r.model_copy(update={"descended": fell[r.quality]}) if r.quality in fell else r for r in plan.renditions)
    notes = (f"{quality} is encoded without a GPU after all. {sentence}" for quality, sentence in fell.items())
    return plan.model_copy(update={"renditions": tuple(told), "notes": (*plan.notes, *notes)})
