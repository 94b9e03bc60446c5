"""The renditions of one job, in the lists and spans of its plan: H.264, by which the video plays, before all else."""

from collections.abc import Sequence

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from contracts.errors import BuildMissing
    from contracts.media import SourceFacts
    from contracts.plan import PlannedRendition, TranscodePlan
    from contracts.states import JobKind
    from contracts.steps import EncodeList, MissingRendition, TranscodeRequest
    from workflows import fates, openings, options
    from workflows.children import Children
    from workflows.encode_list import encode_list
    from workflows.planned import Planned
    from workflows.stepping import Steps

# A list of more spans than this has a history of its own.
CHILD_FROM_SPANS = 16


class Picture:
    def __init__(
        self, steps: Steps, job: TranscodeRequest, facts: SourceFacts, planned: Planned, children: Children
    ) -> None:
        self._steps, self._job, self._facts, self._planned, self._children = steps, job, facts, planned, children
        # A list that has a history of its own does not know how far the one before it counted.
        self._next: dict[str, int] = {}

    async def make(self, qualities: Sequence[str]) -> list[MissingRendition]:
        """Encode some renditions; say which ones the video has to do without."""
        found: list[MissingRendition] = []
        for alternative in (False, True):
            plan = self._planned.plan
            wanted = [r.quality for r in plan.renditions if r.quality in qualities and r.is_alternative is alternative]
            if alternative and wanted:  # the plan looked for those that were encoded first
                await self._planned.route(tuple(wanted))
            moves = options.ALTERNATIVE_MOVES if alternative else options.MOVES
            found += await self._with_builds(wanted, moves) if wanted else []
        return found

    async def _with_builds(self, wanted: Sequence[str], most: int) -> list[MissingRendition]:
        """Encode; what no worker has the ffmpeg for any more is planned for another one and begins anew."""
        missing = await self._lists(self._planned.plan, wanted)
        for _ in range(most):
            stuck = tuple(each.name for each in missing if each.code == BuildMissing.code)
            if not stuck:
                break
            plan = await self._planned.find_builds(stuck)
            missing = [each for each in missing if each.name not in stuck]
            missing += await self._lists(plan, stuck)
        for each in missing:
            if each.name in fates.critical_qualities(self._job, self._planned.plan):
                raise fates.lost(each)
        return missing

    async def _lists(self, plan: TranscodePlan, qualities: Sequence[str]) -> list[MissingRendition]:
        lists = plan.lists or (tuple(r.quality for r in plan.renditions),)
        mine = [r for r in plan.renditions if r.quality in qualities]
        wanted = [tuple(r for r in mine if r.quality in names and not r.gpu) for names in lists]
        chosen = [some for some in wanted if some]
        several = len(chosen) > 1
        first = wanted[0]  # the one that makes the video playable

        async def one(some: tuple[PlannedRendition, ...]) -> tuple[MissingRendition, ...]:
            if first and some is not first:
                await openings.go_next(plan.grid)
            return await self._list(some, plan, alone=not several, first=some is first)

        # A GPU takes one quality at a time, and nobody's place in the other queue.
        devices = [(r,) for r in mine if r.gpu]
        alone = not chosen and len(devices) == 1  # a video of one rung, which plays by it
        done = await self._steps.together(
            *(one(some) for some in chosen),
            *(self._list(some, plan, alone=alone, first=alone) for some in devices),
        )
        return [each for missing in done for each in missing]

    async def _list(
        self, renditions: tuple[PlannedRendition, ...], plan: TranscodePlan, *, alone: bool, first: bool
    ) -> tuple[MissingRendition, ...]:
        steps = self._steps
        counted = max(self._job.first_generation, *(self._next.get(r.quality, 0) for r in renditions))
        request = EncodeList(
            # Without the plan it continues: a list is told all that it needs, and there may be many lists.
            job=self._job.model_copy(
                update={
                    "plan": None,
                    "copied": None,
                    "tier": steps.tier,
                    "first_generation": counted,
                    "tried": steps.ledger.tried,
                }
            ),
            video=self._facts.video,
            grid=plan.grid,
            spans=plan.spans,
            renditions=renditions,
            encoding=plan.encoding,
            window=plan.window,
            alone=alone and len(plan.spans) == 1,
            # Of a retranscode there is a stream already: nobody waits to begin.
            opening=first and self._job.kind is not JobKind.RETRANSCODE,
            ahead=first and not alone,
            critical=fates.critical_qualities(self._job, plan),
            paused=steps.paused,
            gpu_start_s=plan.gpu_start_s,
        )
        short = len(plan.spans) < CHILD_FROM_SPANS
        encoded = await (encode_list(steps, request) if short else self._children.run(request))
        self._next |= dict.fromkeys((r.quality for r in renditions), encoded.next_generation)
        if encoded.descends is None:
            return encoded.missing
        return await self._descended(encoded.descends, alone=alone, first=first)

    async def _descended(self, lost: MissingRendition, *, alone: bool, first: bool) -> tuple[MissingRendition, ...]:
        """Encode on the CPU, from the start, what no GPU makes."""
        workflow.logger.warning("%s descends to the CPU: %s", lost.name, lost.sentence)
        plan = await self._planned.descend(lost)
        anew = tuple(r for r in plan.renditions if r.quality == lost.name and not r.gpu)
        # Without a software encoder for its codec the video does without it.
        return await self._list(anew, plan, alone=alone, first=first) if anew else (lost,)
