"""Look at the source. What is found goes into history, and is kept to."""

from temporalio import activity

from activities.pulse import pulsing
from contracts.errors import EncoderStalled, SourceTooComplex
from contracts.media import SourceFacts
from contracts.steps import Probe
from media.limits import Limits
from media.probe import probe
from media.tools import Toolbox
from storage.store import Store


class ProbeSteps:
    def __init__(self, store: Store, tools: Toolbox, limits: Limits | None = None) -> None:
        self._store, self._tools, self._limits = store, tools, limits or Limits()

    @activity.defn
    async def probe(self, request: Probe) -> SourceFacts:
        """Find out what was uploaded, or refuse it with a reason.

        Safe to repeat: it only reads the source, which never changes.
        """
        try:
            async with pulsing(), self._store.local_file(request.source_key) as source:
                return await probe(self._tools, source, self._limits)
        except SourceTooComplex as error:
            # Beside busy encoders an honest file takes long, too: it is refused when it does so again.
            if isinstance(error.__cause__, EncoderStalled) and activity.info().attempt == 1:
                raise error.__cause__ from None
            raise
