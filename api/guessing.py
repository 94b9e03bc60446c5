"""Who guesses secrets has to wait: ten wrong ones at once from an address, then one every six seconds.

Counted by each process for itself. Signed-in people are not held up: their cookie is nothing one guesses.
"""

import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable

from fastapi import Request

from api.errors import ApiError

BURST = 10
EVERY_S = 6.0
ADDRESSES = 10_000  # remembered at once; the longest unseen is forgotten first


class Guesses:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._free_at: OrderedDict[str, float] = OrderedDict()  # by then all wrong guesses are forgiven

    def refuse_if_many(self, request: Request) -> None:
        """Raise 429 before a secret is even looked at."""
        wait_s = self._free_at.get(_from(request), 0.0) - self._clock() - (BURST - 1) * EVERY_S
        if wait_s > 0:
            raise ApiError(
                429,
                "TOO_MANY_GUESSES",
                "Too many wrong secrets came from this address. Please wait a moment.",
                headers={"Retry-After": str(math.ceil(wait_s))},
            )

    def wrong(self, request: Request) -> None:
        address = _from(request)
        self._free_at[address] = max(self._free_at.get(address, 0.0), self._clock()) + EVERY_S
        self._free_at.move_to_end(address)
        while len(self._free_at) > ADDRESSES:
            self._free_at.popitem(last=False)


def _from(request: Request) -> str:
    host = request.client.host if request.client else ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address):
        # One household has a /64: each of its 2^64 addresses is the same guesser.
        return str(ipaddress.ip_network((address, 64), strict=False))
    return host
