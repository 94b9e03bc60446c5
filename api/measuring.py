"""What this process answers, counted: requests by route and status, and how long they took."""

import time
from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass, field

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.exposition import Family, Sample

BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
NO_ROUTE = "none"  # not one label per address that a stranger makes up
CUT = 499  # the client went away before there was an answer


@dataclass
class _Took:
    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS_S) + 1))
    seconds: float = 0.0


class Measured:
    """The counts of one process, from its start on."""

    def __init__(self) -> None:
        self.in_progress = 0
        self.started_at = time.time()
        self._requests: dict[tuple[str, str, int], int] = defaultdict(int)
        self._took: dict[tuple[str, str], _Took] = defaultdict(_Took)

    def add(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests[method, route, status] += 1
        took = self._took[method, route]
        took.counts[bisect_left(BOUNDS_S, seconds)] += 1
        took.seconds += seconds

    def families(self) -> list[Family]:
        requests = [
            Sample(count, {"method": method, "route": route, "status": str(status)})
            for (method, route, status), count in sorted(self._requests.items())
        ]
        return [
            Family("vlog_http_requests_total", "counter", "Requests that this API process has answered.", requests),
            Family(
                "vlog_http_request_duration_seconds",
                "histogram",
                "How long they took, to the last byte.",
                [sample for key, took in sorted(self._took.items()) for sample in _histogram(*key, took)],
            ),
            Family(
                "vlog_http_requests_in_progress", "gauge", "Requests being answered now.", [Sample(self.in_progress)]
            ),
            Family("vlog_api_start_time_seconds", "gauge", "When this API process came up.", [Sample(self.started_at)]),
        ]


def _histogram(method: str, route: str, took: _Took) -> list[Sample]:
    labels = {"method": method, "route": route}
    samples, so_far = [], 0
    for bound, count in zip((*BOUNDS_S, float("inf")), took.counts, strict=True):
        so_far += count
        below = "+Inf" if bound == float("inf") else f"{bound:g}"
        samples.append(Sample(so_far, {**labels, "le": below}, "_bucket"))
    return [*samples, Sample(took.seconds, labels, "_sum"), Sample(so_far, labels, "_count")]


class Measure:
    """Counts every request; the outermost, so that what is refused early counts too."""

    def __init__(self, app: ASGIApp, measured: Measured) -> None:
        self.app, self._measured = app, measured

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.monotonic(), CUT

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self._measured.in_progress += 1
        try:
            await self.app(scope, receive, watch)
        finally:
            self._measured.in_progress -= 1
            method = scope["method"] if scope["method"] in METHODS else "OTHER"
            route = getattr(scope.get("route"), "path", NO_ROUTE)
            self._measured.add(method, route, status, time.monotonic() - began)
