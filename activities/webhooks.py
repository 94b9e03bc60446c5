"""Telling the outside of one event: posting it, and noting what became of that.

The receiver may be anybody, or hang, or answer without end. Nothing of an address is ever logged: those of chats are
passwords.
"""

import asyncio
import hashlib
import hmac
import time
from email.utils import parsedate_to_datetime
from importlib.metadata import version

import httpx
from temporalio import activity

from contracts.webhooks import Outcome, PostDelivery, Posted, RecordAttempt
from mirror import writes_hooks
from mirror.sessions import Database
from mirror.writes_hooks import Envelope

BODY_LIMIT = 4096  # of an answer; the rest is not even read
LONGEST_RETRY_AFTER_S = 24 * 3600.0
GONE = 410
ROOM_S = 1.0  # receivers that hang must not hold every slot of a pool that videos wait for


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """Sign the moment with the body, so that nobody can send an old one again."""
    return "sha256=" + hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def headers_of(what: Envelope, body: bytes, now_s: float) -> dict[str, str]:
    """Put the headers together; ours cannot be replaced by the webhook's own."""
    timestamp = str(int(now_s))
    ours = {
        "content-type": "application/json",
        "user-agent": f"VLog/{version('vlog')}",
        "accept-encoding": "identity",
        "x-vlog-event": what.event,
        "x-vlog-delivery-id": what.uid,
        "x-vlog-timestamp": timestamp,
    }
    if what.secret:
        ours["x-vlog-signature"] = signature(what.secret, timestamp, body)
    return {name.lower(): value for name, value in what.headers.items()} | ours


class WebhookSteps:
    def __init__(self, database: Database, *, at_once: int = 1) -> None:
        self._database = database
        self._room = asyncio.Semaphore(max(1, at_once))
        self._http: httpx.AsyncClient | None = None

    @activity.defn
    async def post_delivery(self, request: PostDelivery) -> Posted:
        """Post an event once, and say what came back.

        At most `at_once` of a process's slots are spent on receivers.

        Safe to repeat: the receiver may get it again, under the same delivery id, and can tell.
        """
        async with self._database.read() as session:
            what = await writes_hooks.envelope(session, request.delivery_id)
        if what is None:
            return Posted(outcome=Outcome.DROPPED, error="The webhook is gone or switched off.")
        try:
            async with asyncio.timeout(ROOM_S):
                await self._room.acquire()
        except TimeoutError:
            return Posted(outcome=Outcome.FAILED, error="Too many receivers kept us waiting; it is tried again.")
        try:
            return await self._post(what)
        finally:
            self._room.release()

    @activity.defn
    async def record_attempt(self, request: RecordAttempt) -> bool:
        """Note what became of an attempt; tell whether the webhook still wants another.

        Safe to repeat: an attempt that is noted is not noted again.
        """
        async with self._database.write() as session:
            return await writes_hooks.record_attempt(session, request)

    async def _post(self, what: Envelope) -> Posted:
        began = time.monotonic()
        answer = _Answer()
        error: str | None = None
        try:
            async with asyncio.timeout(what.timeout_s):
                await self._exchange(what, answer)
        except TimeoutError:
            error = f"No answer within {what.timeout_s:g} s." if answer.status is None else None
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as problem:
            # Only its kind: its text may name the address.
            error = f"The receiver could not be reached ({type(problem).__name__})." if answer.status is None else None
        outcome = Outcome.FAILED
        if answer.status is not None:
            if 200 <= answer.status < 300:
                outcome = Outcome.DELIVERED
            elif answer.status == GONE:
                outcome, error = Outcome.REFUSED, "The receiver wants no more of these (410)."
            else:
                moved = " Redirects are not followed." if 300 <= answer.status < 400 else ""
                error = f"The receiver answered {answer.status}.{moved}"
        return Posted(
            outcome=outcome,
            status=answer.status,
            body=bytes(answer.body[:BODY_LIMIT]).decode("utf-8", "replace"),
            error=error,
            duration_ms=round((time.monotonic() - began) * 1000),
            retry_after_s=_seconds(answer.retry_after),
        )

    async def _exchange(self, what: Envelope, answer: "_Answer") -> None:
        body = what.body.encode()
        sent = self._client().stream(
            "POST",
            what.url,
            content=body,
            headers=headers_of(what, body, time.time()),
            timeout=what.timeout_s,
        )
        async with sent as response:
            answer.status = response.status_code
            answer.retry_after = response.headers.get("retry-after")
            # Raw: what is packed small may unpack to gigabytes.
            async for chunk in response.aiter_raw():
                answer.body += chunk[: BODY_LIMIT - len(answer.body)]
                if len(answer.body) >= BODY_LIMIT:
                    break

    def _client(self) -> httpx.AsyncClient:
        # Made late, where a loop runs, and kept: its TLS context takes a while. No proxy and no .netrc of the machine,
        # no cookie, no connection that is left open.
        if self._http is None:
            limits = httpx.Limits(max_keepalive_connections=0)
            self._http = httpx.AsyncClient(follow_redirects=False, trust_env=False, limits=limits)
        self._http.cookies.clear()
        return self._http


class _Answer:
    """What is known of an answer so far: a body that never ends does not undo its status."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.retry_after: str | None = None
        self.body = bytearray()


def _seconds(retry_after: str | None) -> float | None:
    """Read how long the receiver wants us to wait: a number, or a date."""
    if retry_after is None:
        return None
    try:
        wait_s = float(retry_after)
    except ValueError:
        try:
            wait_s = parsedate_to_datetime(retry_after).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return None
    return min(wait_s, LONGEST_RETRY_AFTER_S) if 0 < wait_s < float("inf") else None
