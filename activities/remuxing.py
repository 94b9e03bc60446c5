"""The step that only some sources need: the same packets in a container that seeks well."""

from temporalio import activity

from activities.pulse import pulsing
from contracts.errors import SourceUnreadable
from contracts.ids import ObjectKey
from contracts.layout import remux_key
from contracts.media import SourceFacts
from contracts.remux_steps import DropRemux, Remux
from contracts.steps import RemuxedSource
from media.limits import Limits
from media.probe import probe
from media.remux import CONTAINER, remux
from media.tools import Toolbox
from media.trial import check_decodes
from storage.store import Store

_LEAST_KEPT = 0.98  # of the pictures: a copy that lost more is worse than a source that seeks badly


class RemuxSteps:
    def __init__(self, store: Store, tools: Toolbox, limits: Limits, *, stall_s: float) -> None:
        self._store, self._tools, self._limits, self._stall_s = store, tools, limits, stall_s

    @activity.defn
    async def remux(self, request: Remux) -> RemuxedSource:
        """Copy the source's packets into a container that seeks, and look at the copy.

        Safe to repeat: the key is derived from the job and created once; what is stored there is looked at, not
        made again. The source itself is only read. Where no good copy can be made, later steps read the source
        from its start, as a whole.
        """
        key = remux_key(request.video_id, request.job_id)
        name = f"job{request.job_id}-remux-g{request.generation}a{activity.info().attempt}"
        async with pulsing():
            async with self._store.local_file(request.source_key) as source, self._store.scratch(name) as here:
                if await self._store.stat(key) is None:
                    copied = await remux(self._tools, source, here, request.facts, self._limits, stall_s=self._stall_s)
                    if copied is not None:
                        await self._store.put_file(key, copied, create_only=True)
                facts = await self._look(key, request.facts)
                if facts is not None:
                    return RemuxedSource(source_key=key, facts=facts)
                await self._store.delete(key)
                if request.facts.clock_jumps:
                    raise SourceUnreadable(
                        "The file is damaged: its timestamps jump, and nothing could be done about it."
                    )
                await check_decodes(self._tools, source, request.facts.video, request.facts.size_bytes, self._limits)
        told = "Its packets could not be copied to a container that seeks; it is decoded from its start, in one piece."
        facts = request.facts.model_copy(update={"warnings": (*request.facts.warnings, told)})
        return RemuxedSource(source_key=request.source_key, facts=facts)

    async def _look(self, key: ObjectKey, before: SourceFacts) -> SourceFacts | None:
        """Probe the copy; None when it is not there, not readable, or lost pictures."""
        if await self._store.stat(key) is None:
            return None
        try:
            async with self._store.local_file(key) as copied:
                facts = await probe(self._tools, copied, self._limits)
        except SourceUnreadable:
            return None
        if facts.video.packets < before.video.packets * _LEAST_KEPT:
            return None
        return facts.model_copy(
            update={
                # People want to know of what they sent; how it is read is a decision, and told as one.
                "format_name": before.format_name,
                "size_bytes": before.size_bytes,
                "warnings": tuple(dict.fromkeys((*before.warnings, *facts.warnings))),
                "clock_jumps": before.clock_jumps,
                "remuxed": CONTAINER,
            }
        )

    @activity.defn
    async def drop_remux(self, request: DropRemux) -> None:
        """Remove the copy of an ended job.

        Safe to repeat: removing what is gone changes nothing.
        """
        await self._store.delete(request.source_key)
