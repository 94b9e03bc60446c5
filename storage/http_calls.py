"""Calls to the worker API, by a worker that reaches nothing else: who answers what, and what to try again."""

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

import httpx

from contracts.errors import ObjectMissing, ScratchFull, StorageAway, StorageUnavailable
from contracts.gateway import CLAIM_HEADER, KEY_HEADER

log = logging.getLogger(__name__)

T = TypeVar("T")

# Too slow, or too many ask. Who says 5xx is away, too, whoever it is: proxies have numbers of their own for it.
AWAY = frozenset({408, 429})
FULL = 507
# No word of the API's, and final all the same: too large, or not to be read, for whatever stands before it.
FINAL = frozenset({400, 413, 431})
# Somebody else may answer for so long while the step is held; then this way does not work, and another may.
STRANGERS_S = 300.0
STORAGE_S = 60.0  # an API that has no answer from its storage for so long is asked what is wrong with it
TIMEOUT = httpx.Timeout(20.0, connect=10.0, read=60.0, write=60.0)
KEPT_S = 45.0  # an open connection: longer than from one heartbeat to the next, shorter than the API keeps it
FIRST_WAIT_S, LONGEST_WAIT_S = 0.2, 5.0
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


def is_open_to_all(url: str) -> bool:
    """Tell whether what is sent there, a key among it, can be read on its way."""
    where = httpx.URL(url)
    return where.scheme == "http" and where.host not in _LOOPBACK


class Away(StorageUnavailable):
    """Nobody answers just now."""


class StorageSilent(Away):
    """The API answers, and its storage does not answer the API."""


class NotOurs(Away):
    """Something else answers where the API should: a proxy, a page to log in at."""


class ClaimGone(StorageUnavailable):
    """The step is somebody else's by now, or nobody's."""


class Refused(StorageUnavailable):
    """The API will not have it, however often it is asked. It says nothing of this machine, nor of the video."""

    def __init__(self, status: int, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.answer = status, code


class WorkerCalls:
    """One connection pool to the API, with the worker's key."""

    def __init__(self, url: str, key: str) -> None:
        self.url = url.rstrip("/")
        self.heard_at: dict[str, float] = {}  # by claim, when the API last took it for one that is held
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
        except httpx.RequestError as error:
            raise _away(error) from error
        _check(answer)
        return answer

    @asynccontextmanager
    async def stream(
        self, path: str, read: Callable[[httpx.Response], T], *, claim: str, **how: Any
    ) -> AsyncIterator[tuple[httpx.Response, T]]:
        """Read something large, as it comes; `read` is given its head, as by `insist`."""
        headers = how.pop("headers", {}) | {CLAIM_HEADER: claim}
        try:
            async with self._http.stream("GET", path, headers=headers, **how) as answer:
                if not answer.is_success:
                    await answer.aread()
                _check(answer)
                with understanding():
                    said = read(answer)
                self.heard_at[claim] = time.monotonic()
                yield answer, said
        except httpx.RequestError as error:
            raise _away(error) from error

    async def insist(
        self,
        method: str,
        path: str,
        read: Callable[[httpx.Response], T],
        *,
        claim: str,
        body: Callable[[], Any] | None = None,
        **how: Any,
    ) -> T:
        """Ask until the API answers; `body` is made anew each time. A claim that is gone ends it.

        What `read` makes nothing of was not the API's answer.
        """
        waits = Waits()
        while True:
            try:
                answer = await self.ask(method, path, claim=claim, **how, **({"content": body()} if body else {}))
                with understanding():
                    said = read(answer)
                self.heard_at[claim] = time.monotonic()
                return said
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
        await waits.once(error)

    async def _is_storage_away(self) -> bool:
        """Ask the API how its storage is; whoever does not say is away."""
        try:
            return not (await self._http.get("/api/health")).json()["storage"]["ok"]
        except (httpx.RequestError, ValueError, KeyError, TypeError):
            return True


class Waits:
    """Ever longer, and not in step with all the others that wait for the same API."""

    def __init__(self) -> None:
        self._next_s = FIRST_WAIT_S
        self._strange_since: float | None = None
        self._silent_since: float | None = None

    def silence_s(self) -> float:
        """Say for how long the storage has been silent, when it is again; the first time begins it."""
        now = time.monotonic()
        self._silent_since = self._silent_since or now
        return now - self._silent_since

    async def once(self, error: Away | None = None) -> None:
        """Wait for whoever is away. Raises what somebody else has answered for too long."""
        if not isinstance(error, StorageSilent):
            self._silent_since = None  # what it was silent about is long past
        if not isinstance(error, NotOurs):
            self._strange_since = None
        elif self._strange_since is None:
            self._strange_since = time.monotonic()
        elif time.monotonic() - self._strange_since > STRANGERS_S:
            raise error
        await asyncio.sleep(self._next_s * random.uniform(0.5, 1.0))
        was_s, self._next_s = self._next_s, min(LONGEST_WAIT_S, 2 * self._next_s)
        if error is not None and was_s < self._next_s == LONGEST_WAIT_S:
            log.warning("still waiting for the API: %s", error.sentence)


@contextmanager
def understanding() -> Iterator[None]:
    """Take what is no answer of ours, a proxy's page perhaps, for nobody's."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotOurs("What answered there is no API of ours.") from error


def _away(error: Exception) -> Away:
    return Away(f"The API does not answer ({type(error).__name__}).")


def _check(answer: httpx.Response) -> None:
    if answer.is_success:
        return
    status = answer.status_code
    code, sentence = _said(answer)
    if status in AWAY or (status >= 500 and status != FULL):
        raise StorageSilent(sentence) if code == StorageUnavailable.code else Away(f"The API answered {status}.")
    # Only the API knows whose a key is, or what is missing, and that is final; a proxy may say the same numbers when
    # it has lost its way, and wants a login of its own.
    if not code and status not in FINAL:
        raise NotOurs(f"Something before the API answered in its place ({status}).")
    if status == 409:
        raise ClaimGone(sentence)
    if status == 404:
        raise ObjectMissing(sentence)
    if status == FULL:
        raise ScratchFull(sentence)  # as on a machine of its own: later, and no attempt is counted
    raise Refused(status, code, sentence)


def _said(answer: httpx.Response) -> tuple[str, str]:
    """Read the API's code and sentence; no code when it was not the API that spoke."""
    try:
        said = answer.json()
        code, sentence = said["error"], said["detail"]
        if code.isupper():  # as all of ours are
            return str(code), str(sentence)
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    return "", f"The API answered {answer.status_code}."
