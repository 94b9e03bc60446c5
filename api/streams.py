"""From the bell to everybody who watches: pictures read once for all, at most every quarter of a second each.

A picture is the whole state of one video or worker, so a reader who is slow misses states in between and never the
newest, and nothing is kept for them but that.
"""

import asyncio
import math
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import structlog

from api.errors import away, database_away
from api.signed_in import SignedIn

log = structlog.get_logger(__name__)

COALESCE_S = 0.25  # several changes of one thing within it are one
FIRST_READ_S = 10.0
RETRY_S = 1.0
AT_ONCE = 500  # pictures per query
MOST_STREAMS = 2000  # a process may open only so many files

Key = TypeVar("Key")


@dataclass(frozen=True)
class Picture:
    """How something is, written once for all who watch it."""

    frame: bytes  # an event of the stream
    ended: int | None = None  # the job that has ended …
    end: bytes = b""  # … and the event that says so


class Stream(Generic[Key]):
    """One reader: the newest picture of each thing that changed since it was last sent one."""

    def __init__(self, gone: Callable[[Key], bytes], keys: Collection[Key] = (), held: SignedIn | None = None) -> None:
        self.keys = frozenset(keys)
        self.held = held  # the session that opened it, and that it does not outlive
        self._gone = gone
        self._there = set(keys)
        self._news: dict[Key, Picture | None] = {}
        self._ended: dict[Key, int | None] = {}  # the last job that it knows has ended
        self._wake = asyncio.Event()
        self._closed = False

    def put(self, key: Key, picture: Picture | None) -> None:
        # First come, first sent: what changes all the time does not hold up the others.
        self._news[key] = picture
        self._wake.set()

    def close(self) -> None:
        self._closed = True
        self._wake.set()

    async def frames(self, ping: bytes, every_s: float) -> AsyncIterator[bytes]:
        """Give what is to be sent, a ping when there was nothing for long; ends when the stream or its session does."""
        while not self._closed and (left_s := self._left_s()) > 0:
            try:
                async with asyncio.timeout(min(every_s, left_s)):
                    await self._wake.wait()
            except TimeoutError:
                if left_s > every_s:
                    yield ping
                continue
            self._wake.clear()
            news, self._news = self._news, {}
            if text := b"".join(self._written(key, picture) for key, picture in news.items()):
                yield text

    def _left_s(self) -> float:
        return math.inf if self.held is None else self.held.expires_at - time.time()

    def _written(self, key: Key, picture: Picture | None) -> bytes:
        if picture is None:
            self._ended.pop(key, None)
            self._there.discard(key)
            self._closed = self._closed or bool(self.keys and not self._there)  # nothing is left to be told of
            return self._gone(key)
        self._there.add(key)
        # What had ended when somebody came is no news; that it ends, also unseen between two pictures, is.
        is_news = key in self._ended and picture.ended not in (None, self._ended[key])
        if picture.ended is not None or key not in self._ended:
            self._ended[key] = picture.ended
        return picture.frame + (picture.end if is_news else b"")


class Hub(Generic[Key]):
    """Who watches what, and what is to be read for them."""

    def __init__(
        self,
        read: Callable[[Collection[Key] | None], Awaitable[Mapping[Key, Picture]]],
        gone: Callable[[Key], bytes],
        is_listening: Callable[[], bool],
    ) -> None:
        self._read, self._gone, self._is_listening = read, gone, is_listening
        self._watchers: dict[Key, set[Stream[Key]]] = defaultdict(set)
        self._watch_all: set[Stream[Key]] = set()
        self._known: dict[Key, Picture | None] = {}
        self._doubtful: set[Key] = set()  # known, and to be read again before anybody new is shown it
        self._knows_all = False
        self._changed: dict[Key, None] = {}  # in the order of the bell
        self._look_at_all = False
        self._read_at: dict[Key, float] = {}
        self._wake = asyncio.Event()
        self._round = asyncio.Event()  # set, and replaced, when something was read
        self._failures = 0
        self._closed = False
        self.streams: set[Stream[Key]] = set()

    def changed(self, key: Key) -> None:
        """Hear that something is no longer as it was; what nobody watches is nobody's business."""
        if self._watch_all or key in self._watchers:
            self._changed[key] = None
            self._wake.set()

    def look_anew(self) -> None:
        """Read everything that is watched: who knows what was not heard."""
        self._changed.update(dict.fromkeys(self._watchers))
        self._read_at.clear()
        self._look_at_all = bool(self._watch_all)
        self._wake.set()

    def close(self) -> None:
        """End every stream, so that nobody waits for them."""
        self._closed = True
        for stream in self.streams:
            stream.close()
        self._finish_round()

    def end(self, session_id: str) -> None:
        """End the streams that a session opened."""
        for stream in self.streams:
            if stream.held is not None and stream.held.id == session_id:
                stream.close()

    # --- watching -----------------------------------------------------------------------------------------------

    async def watch(self, keys: Collection[Key], held: SignedIn | None = None) -> tuple[Stream[Key], list[Key]]:
        """Begin to watch some things; the stream begins with how they are. Also names those that are not there."""
        stream = self._open(keys, held)
        for key in keys:
            self._watchers[key].add(stream)
        try:
            if not self._is_listening():  # what is known may be old; it stays known, for those who were told it
                self._doubtful.update(keys)
            unknown = [key for key in keys if key not in self._known or key in self._doubtful]
            self._changed.update(dict.fromkeys(unknown))
            for key in unknown:
                self._read_at.pop(key, None)
            await self._until(lambda: all(key in self._known and key not in self._doubtful for key in keys))
        except BaseException:
            self.leave(stream)
            raise
        missing = [key for key in keys if self._known[key] is None]
        for key in keys:
            stream.put(key, self._known[key])
        return stream, missing

    async def watch_all(self, held: SignedIn | None = None) -> Stream[Key]:
        stream = self._open((), held)
        self._watch_all.add(stream)
        try:
            if not (self._knows_all and self._is_listening()):
                self._knows_all, self._look_at_all = False, True
            await self._until(lambda: self._knows_all)
        except BaseException:
            self.leave(stream)
            raise
        for key, picture in self._known.items():
            if picture is not None:
                stream.put(key, picture)
        return stream

    def leave(self, stream: Stream[Key]) -> None:
        self.streams.discard(stream)
        self._watch_all.discard(stream)
        for key in stream.keys:
            self._watchers[key].discard(stream)
            if not self._watchers[key]:
                self._forget(key)
        if not self.streams:
            self._known.clear()
            self._doubtful.clear()
            self._read_at.clear()
            self._knows_all = False

    def _open(self, keys: Collection[Key], held: SignedIn | None) -> Stream[Key]:
        if self._closed:
            raise away("STOPPING", "This process is about to stop; another one will answer.")
        if len(self.streams) >= MOST_STREAMS:
            raise away("STREAMS_FULL", f"There are {MOST_STREAMS} event streams already.")
        stream = Stream(self._gone, keys, held)
        self.streams.add(stream)
        return stream

    def _forget(self, key: Key) -> None:
        del self._watchers[key]
        self._known.pop(key, None)
        self._doubtful.discard(key)
        self._read_at.pop(key, None)
        self._changed.pop(key, None)

    async def _until(self, is_known: Callable[[], bool]) -> None:
        """Wait for the first reading, which may also fail."""
        self._wake.set()
        failures = self._failures
        try:
            async with asyncio.timeout(FIRST_READ_S):
                while not is_known() and not self._closed:
                    await self._round.wait()
                    if self._failures != failures:
                        raise database_away()
        except TimeoutError as error:
            raise database_away() from error
        if self._closed:
            raise away("STOPPING", "This process is about to stop; another one will answer.")

    # --- reading ------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Read what has changed for all who watch it, one query at a time, until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while (wait_s := await self._one_round()) is not None:
                try:
                    async with asyncio.timeout(wait_s):
                        await self._wake.wait()  # something else may be due before
                    self._wake.clear()
                except TimeoutError:
                    pass

    async def _one_round(self) -> float | None:
        """Read what is due; say when the next is, or None when nothing else has changed."""
        now = time.monotonic()
        due = [key for key in self._changed if now - self._read_at.get(key, -1e9) >= COALESCE_S][:AT_ONCE]
        everything, self._look_at_all = self._look_at_all, False
        for key in due:
            del self._changed[key]
            self._read_at[key] = now
        if due or everything:
            try:
                found = await self._read(None if everything else due)
            except Exception as error:
                log.warning("streams_not_read", error=str(error).partition("\n")[0] or type(error).__name__)
                self._changed.update(dict.fromkeys(key for key in due if self._is_watched(key)))
                self._look_at_all = self._look_at_all or (everything and bool(self._watch_all))
                self._failures += 1
                self._finish_round()
                # Where nobody listens either, everything is read when somebody does again.
                return RETRY_S if self._is_listening() and (self._changed or self._look_at_all) else None
            keys = {*due, *found, *(self._known if everything else ())}
            for key in keys:
                self._publish(key, found.get(key))
            self._knows_all = self._knows_all or everything
            self._finish_round()
        if self._look_at_all:
            return 0.0
        if not self._changed:
            return None
        return max(0.0, min(self._read_at.get(key, 0.0) for key in self._changed) + COALESCE_S - time.monotonic())

    def _publish(self, key: Key, picture: Picture | None) -> None:
        self._doubtful.discard(key)
        if not self._is_watched(key):
            self._read_at.pop(key, None)
            return
        if key in self._known and self._known[key] == picture:
            return
        was_known = key in self._known
        self._known[key] = picture
        if picture is None and not was_known:
            return  # nobody was told that it exists
        for stream in (*self._watch_all, *self._watchers.get(key, ())):
            stream.put(key, picture)

    def _is_watched(self, key: Key) -> bool:
        return bool(self._watch_all) or key in self._watchers

    def _finish_round(self) -> None:
        self._round.set()
        self._round = asyncio.Event()
