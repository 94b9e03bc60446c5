"""Where a remote worker's quarantine is written down: by the API, with a beat."""

from collections.abc import Callable

from contracts.queues import Pool
from storage.http_calls import Refused
from workers.remote_api import RemoteApi


class RemoteNotes:
    """What this worker has set aside."""

    def __init__(self, api: RemoteApi, status: Callable[[], str]) -> None:
        self._api, self._status = api, status
        self.found: frozenset[str] = frozenset()  # as its first beat was answered

    async def aside(self) -> frozenset[str]:
        return self.found

    async def set_aside(self, pools: frozenset[str], why: str) -> None:
        try:
            await self._api.beat(self._status(), {"pools_aside": sorted(pools), "aside_because": why})
        except Refused as error:
            if error.status != 403:  # disabled: it was written all the same
                raise

    async def others_serve(self, pool: Pool) -> bool:
        return True  # asked of `io` only, which somebody local serves
