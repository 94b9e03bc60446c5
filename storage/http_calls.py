"""Calls to the worker API, by a worker that reaches nothing else: who answers what, and what to try again."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx

from contracts.errors import ObjectMissing, ScratchFull, StorageAway, StorageUnavailable, VlogError
from contracts.gateway import CLAIM_HEADER, KEY_HEADER

# The API, a proxy before it, or a neighbour behind it is away; or too many ask.
AWAY = frozenset({408, 429, 500, 502, 503, 504})
TIMEOUT = httpx.Timeout(20.0, connect=10.0, read=60.0, write=60.0)
KEPT_S = 45.0  # an open connection: longer than from one heartbeat to the next, shorter than the API keeps it
FIRST_WAIT_S, LONGEST_WAIT_S = 0.2, 5.0
STORAGE_S = 60.0  # an API that has no answer from its storage for so long is asked what is wrong with it
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


def is_open_to_all(url: str) -> bool:
    """Tell whether what is sent there, a key among it, can be read on its way."""
    where = httpx.URL(url)
    return where.scheme == "http" and where.host not in _LOOPBACK


class Away(StorageUnavailable):
    """Nobody answers just now."""


class StorageSilent(Away):
    """The API answers, and its storage does not answer the API."""


class ClaimGone(StorageUnavailable):
    """The step is somebody else's by now, or nobody's."""


class Refused(VlogError):
    """The API will not have it, however often it is asked."""

    def __init__(self, status: int, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.answer = status, code


class WorkerCalls:
    """One connection pool to the API, with the worker's key."""

    def __init__(self, url: str, key: str) -> None:
        self.url = url.rstrip("/")
        self._http = httpx.AsyncClient(
            base_url=self.url,
            headers={KEY_HEADER: key},
            timeout=TIMEOUT,
            limits=httpx.Limits(max_connections=None, keepalive_expiry=KEPT_S),
            trust_env=httpx.URL(url).host not in _LOOPBACK,
        )

    async def aclose(self) -> None:
        await self._http.aclose()

    async def ask(self, method: str, path: str, *, claim: str | None = None, **how: Any) -> httpx.Response:
        """Ask once. Raises Away, ClaimGone, ObjectMissing or Refused."""
        how["headers"] = how.get("headers", {}) | ({CLAIM_HEADER: claim} if claim else {})
        try:
            answer = await self._http.request(method, path, **how)
        except httpx.TransportError as error:
            raise _away(error) from error
        _check(answer)
        return answer

    @asynccontextmanager
    async def stream(self, path: str, *, claim: str, **how: Any) -> AsyncIterator[httpx.Response]:
        """Read something large, as it comes."""
        headers = how.pop("headers", {}) | {CLAIM_HEADER: claim}
        try:
            async with self._http.stream("GET", path, headers=headers, **how) as answer:
                if answer.is_error:
                    await answer.aread()
                _check(answer)
                yield answer
        except httpx.TransportError as error:
            raise _away(error) from error

    async def insist(
        self, method: str, path: str, *, claim: str, body: Callable[[], Any] | None = None, **how: Any
    ) -> httpx.Response:
        """Ask until somebody answers; `body` is made anew each time. A claim that is gone ends it."""
        waits = Waits()
        while True:
            try:
                return await self.ask(method, path, claim=claim, **how, **({"content": body()} if body else {}))
            except Away as error:
                await self.bear(error, waits)

    async def bear(self, error: Away, waits: "Waits") -> None:
        """Wait before an API that is away is asked again; not for ever for a storage behind it that does not answer.

        A step that held its claim all the while would run into its time limit, and lose a try by it.
        """
        if isinstance(error, StorageSilent) and waits.silence_s() > STORAGE_S:
            if await self._is_storage_away():
                raise StorageAway(f"The storage is away: {error.sentence}") from error
            raise StorageUnavailable(error.sentence) from error  # only what this step asks for
        await waits.once()

    async def _is_storage_away(self) -> bool:
        """Ask the API how its storage is; whoever does not say is away."""
        try:
            return not (await self._http.get("/api/health")).json()["storage"]["ok"]
        except (httpx.TransportError, ValueError, KeyError, TypeError):
            return True


class Waits:
    """Ever longer, and not in step with all the others that wait for the same API."""

    def __init__(self) -> None:
        self._next_s = FIRST_WAIT_S
        self._silent_since: float | None = None

    def silence_s(self) -> float:
        """Say for how long the storage has been silent, when it is again; the first time begins it."""
        now = time.monotonic()
        self._silent_since = self._silent_since or now
        return now - self._silent_since

    async def once(self) -> None:
        await asyncio.sleep(self._next_s * random.uniform(0.5, 1.0))
        self._next_s = min(LONGEST_WAIT_S, 2 * self._next_s)


def _away(error: Exception) -> Away:
    return Away(f"The API does not answer ({type(error).__name__}).")


def _check(answer: httpx.Response) -> None:
    if answer.is_success:
        return
    code, sentence = _said(answer)
    if answer.status_code in AWAY:
        if code == StorageUnavailable.code:
            raise StorageSilent(sentence)
        raise Away(f"The API answered {answer.status_code}.")
    if answer.status_code == 409:
        raise ClaimGone(sentence)
    if answer.status_code == 404:
        # Only the API knows what is missing, and that is final; a proxy that lost its way to it says 404, too.
        raise ObjectMissing(sentence) if code else Away(sentence)
    if answer.status_code == 507:
        raise ScratchFull(sentence)  # as on a machine of its own: later, and no attempt is counted
    raise Refused(answer.status_code, code, sentence)


def _said(answer: httpx.Response) -> tuple[str, str]:
    try:
        body = answer.json()
        return str(body["error"]), str(body["detail"])
    except (ValueError, KeyError, TypeError):
        return "", f"The API answered {answer.status_code}."
