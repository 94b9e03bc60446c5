"""Look at the source, decide what to make of it. Both answers go into history and are kept to."""

from collections.abc import Awaitable, Callable

from temporalio import activity

from activities.pulse import pulsing
from contracts.media import Capacity, SourceFacts, TranscodePlan
from contracts.steps import MakePlan, Probe
from media.continuing import continued
from media.limits import Limits
from media.pinning import pin_anew
from media.planning import PlanOptions, make_plan
from media.probe import probe
from media.tools import Toolbox
from storage.store import Store


class ProbeSteps:
    def __init__(
        self,
        store: Store,
        tools: Toolbox,
        options: PlanOptions,
        capacity: Callable[[], Awaitable[Capacity]],
        limits: Limits | None = None,
    ) -> None:
        self._store, self._tools, self._options, self._capacity = store, tools, options, capacity
        self._limits = limits or Limits()

    @activity.defn
    async def probe(self, request: Probe) -> SourceFacts:
        """Find out what was uploaded, or refuse it with a reason.

        Safe to repeat: it only reads the source, which never changes.
        """
        async with pulsing(), self._store.local_file(request.source_key) as source:
            return await probe(self._tools, source, self._limits)

    @activity.defn
    async def plan(self, request: MakePlan) -> TranscodePlan:
        """Choose rungs, grid, spans, lists and encoder, for the workers that are there now.

        Safe to repeat: it is a pure choice. It is a step, not workflow code, so that a new ladder
        tomorrow cannot change what a running video has already promised.
        """
        if request.again and request.continues is not None:
            return pin_anew(request.continues, request.facts, self._tools, request.pending, request.anew)
        plan = make_plan(request.facts, self._options, self._tools, request.qualities, await self._capacity())
        return continued(plan, request, frozenset(tool.build for tool in self._tools.tools))
