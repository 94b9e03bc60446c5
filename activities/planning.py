"""Decide what to make of a source. The answer goes into history, and is kept to."""

from collections.abc import Awaitable, Callable

from temporalio import activity

from contracts.errors import SourceUnsupported
from contracts.ids import JobId
from contracts.plan import Capacity, IdleGpu, TranscodePlan
from contracts.steps import MakePlan
from media.continuing import continued
from media.pinning import pin_anew
from media.planning import PlanOptions, make_plan
from media.routing import descended, routed
from media.tools import Toolbox


class PlanSteps:
    def __init__(
        self,
        tools: Toolbox,
        options: PlanOptions,
        capacity: Callable[[JobId], Awaitable[Capacity]],
        gpus: Callable[[JobId], Awaitable[tuple[IdleGpu, ...]]] | None = None,
    ) -> None:
        self._tools, self._options, self._capacity, self._gpus = tools, options, capacity, gpus

    @activity.defn
    async def plan(self, request: MakePlan) -> TranscodePlan:
        """Choose rungs, grid, spans, lists and encoder, for the workers that are there now.

        Safe to repeat: it is a pure choice. It is a step, not workflow code, so that a new ladder
        tomorrow cannot change what a running video has already promised.
        """
        if request.again and request.continues is not None:
            return await self._planned_again(request, request.continues)
        capacity = await self._capacity(request.job_id)
        plan = self._made(request, capacity)
        tools = self._tools.known_to(capacity.builds)
        gpus = await self._idle_gpus(request)
        plan = continued(plan, request, frozenset(tool.build for tool in tools.tools), gpus)
        begun = plan.goes_on_with(request.continues) if request.same_output else ()
        # What comes after these looks for a GPU when it is its turn.
        return routed(plan, gpus, [r.quality for r in plan.renditions if not r.is_alternative], begun)

    def _made(self, request: MakePlan, capacity: Capacity) -> TranscodePlan:
        """Plan for an ffmpeg that the workers have, unless that costs pictures or sound.

        Who has the able one may only be restarting; its work waits then, and moves if it does not come back.
        """

        def made(tools: Toolbox) -> TranscodePlan:
            return make_plan(request.facts, self._options, tools, request.qualities, capacity)

        able = made(self._tools.ranked(capacity.builds))
        try:
            plan = made(self._tools.known_to(capacity.builds))
        except SourceUnsupported:
            return able
        is_less = len(plan.renditions) < len(able.renditions) or len(plan.audio) < len(able.audio)
        return able if is_less else plan

    async def _planned_again(self, request: MakePlan, before: TranscodePlan) -> TranscodePlan:
        if request.routes:
            return routed(before, await self._idle_gpus(request), request.routes, request.begun)
        lost = request.descends
        anew = (*request.anew, *((lost.name,) if lost else ()))
        tools = self._tools.known_to((await self._capacity(request.job_id)).builds)
        try:
            plan = pin_anew(before, request.facts, tools, request.pending, anew)
        except SourceUnsupported:  # who is there now cannot make it; who could may be back in a minute
            plan = pin_anew(before, request.facts, self._tools, request.pending, anew)
        return descended(before, plan, lost)

    async def _idle_gpus(self, request: MakePlan) -> tuple[IdleGpu, ...]:
        return await self._gpus(request.job_id) if self._gpus else ()
