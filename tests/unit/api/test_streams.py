"""Who watches what: one reading for all, the newest for the slow, and nothing for nobody."""

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace
from typing import Any

import pytest

from api.errors import ApiError
from api.event_stream import PING, EventStream
from api.events import follow_videos
from api.signed_in import LASTS_S, REMEMBERED, SignedIn, SignedOut
from api.streams import COALESCE_S, Hub, Picture, Stream

SOON = 30.0


class World:
    """What there is to see, and how often it was looked at."""

    def __init__(self) -> None:
        self.there: dict[int, Picture] = {}
        self.looks: list[Collection[int] | None] = []
        self.listening = True
        self.broken = False
        self.hub: Hub[int] = Hub(self.read, lambda key: b"gone %d;" % key, lambda: self.listening)

    async def read(self, keys: Collection[int] | None) -> Mapping[int, Picture]:
        self.looks.append(keys)
        await asyncio.sleep(0)
        if self.broken:
            raise OSError("away")
        return {key: picture for key, picture in self.there.items() if keys is None or key in keys}

    def change(self, key: int, frame: str, ended: int | None = None) -> None:
        self.there[key] = Picture(f"{frame};".encode(), ended, b"end;" if ended else b"")
        self.hub.changed(key)


@asynccontextmanager
async def world() -> AsyncIterator[World]:
    made = World()
    task = asyncio.create_task(made.hub.run())
    try:
        yield made
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


class Seen:
    """A reader who writes down what comes."""

    def __init__(self, stream: Stream[int]) -> None:
        self._frames = stream.frames(b"ping;", SOON)

    async def next(self) -> str:
        async with asyncio.timeout(SOON):
            return (await anext(self._frames)).decode()


async def test_a_hundred_readers_of_one_video_cost_one_reading_each_time() -> None:
    async with world() as w:
        w.change(1, "a")
        streams = [(await w.hub.watch([1]))[0] for _ in range(100)]
        seen = [Seen(stream) for stream in streams]
        assert {await each.next() for each in seen} == {"a;"}
        assert len(w.looks) == 1
        w.change(1, "b")
        assert {await each.next() for each in seen} == {"b;"}
        assert len(w.looks) == 2


async def test_a_burst_is_read_at_once_and_once_more() -> None:
    async with world() as w:
        w.change(1, "0")
        stream, _ = await w.hub.watch([1])
        seen = Seen(stream)
        assert await seen.next() == "0;"
        await asyncio.sleep(COALESCE_S)
        for number in range(1, 101):
            w.change(1, str(number))
            await asyncio.sleep(0)
        told = [await seen.next()]
        while told[-1] != "100;":
            told.append(await seen.next())
        # The first look, the first change, and what came while that was read.
        assert len(w.looks) <= 3
        assert len(told) <= 2


async def test_who_is_slow_gets_the_newest_and_nothing_is_kept_for_them() -> None:
    async with world() as w:
        w.change(1, "old")
        w.change(2, "other")
        slow, _ = await w.hub.watch([1, 2])
        quick = Seen((await w.hub.watch([1]))[0])
        await quick.next()
        for number in range(3):
            await asyncio.sleep(COALESCE_S)
            w.change(1, f"new{number}")
            while await quick.next() != f"new{number};":
                pass
        assert len(slow._news) == 2
        assert sorted((await Seen(slow).next()).strip(";").split(";")) == ["new2", "other"]


async def test_what_nobody_watches_is_not_read() -> None:
    async with world() as w:
        w.change(1, "a")
        stream, _ = await w.hub.watch([1])
        w.hub.leave(stream)
        w.change(1, "b")
        w.change(2, "c")
        await asyncio.sleep(2 * COALESCE_S)
        assert w.looks == [[1]]
        assert not w.hub.streams and not w.hub._known and not w.hub._watchers and not w.hub._read_at


async def test_an_end_is_told_once_and_only_to_those_who_saw_the_beginning() -> None:
    async with world() as w:
        w.change(1, "runs")
        early = Seen((await w.hub.watch([1]))[0])
        assert await early.next() == "runs;"
        w.change(1, "done", ended=7)
        assert await early.next() == "done;end;"
        late = Seen((await w.hub.watch([1]))[0])
        assert await late.next() == "done;"
        await asyncio.sleep(COALESCE_S)
        w.change(1, "told more", ended=7)
        assert (await early.next(), await late.next()) == ("told more;", "told more;")
        await asyncio.sleep(COALESCE_S)
        # The next job began and ended before anybody looked.
        w.change(1, "done again", ended=8)
        assert (await early.next(), await late.next()) == ("done again;end;", "done again;end;")


async def test_what_is_not_there_is_named_and_what_goes_ends_the_stream() -> None:
    async with world() as w:
        w.change(1, "a")
        stream, missing = await w.hub.watch([1, 2])
        assert missing == [2]
        both = Seen(stream)
        assert await both.next() == "a;gone 2;"
        w.change(1, "b")
        assert await both.next() == "b;"
        w.hub.leave(stream)
        seen = Seen((await w.hub.watch([1]))[0])
        await seen.next()
        del w.there[1]
        w.hub.changed(1)
        assert await seen.next() == "gone 1;"
        with pytest.raises(StopAsyncIteration):
            await seen.next()


async def test_a_stream_is_refused_only_when_nothing_it_would_tell_of_is_there() -> None:
    async with world() as w:
        settings = SimpleNamespace(admin_secret=None, sse_reconnect_timeout_ms=3000, sse_heartbeat_interval=SOON)
        parts: Any = SimpleNamespace(settings=settings)
        state = SimpleNamespace(parts=parts, live=SimpleNamespace(videos=w.hub))
        request: Any = SimpleNamespace(app=SimpleNamespace(state=state), headers={})
        w.change(1, "a")
        assert isinstance(await follow_videos(request, parts, "2,1,3"), EventStream)
        assert len(w.hub.streams) == 1
        with pytest.raises(ApiError) as refused:
            await follow_videos(request, parts, "2,3")
        assert (refused.value.status, refused.value.code) == (404, "VIDEO_NOT_FOUND")
        assert len(w.hub.streams) == 1, "who was refused watches nothing"


async def test_a_lost_connection_means_to_look_at_everything_again() -> None:
    async with world() as w:
        w.change(1, "a")
        seen = Seen((await w.hub.watch([1]))[0])
        await seen.next()
        w.listening = False
        w.there[1] = Picture(b"unheard;")
        # Who comes now is not shown what may be old.
        fresh = Seen((await w.hub.watch([1]))[0])
        assert await fresh.next() == "unheard;"
        w.there[1] = Picture(b"newer;")
        w.listening = True
        w.hub.look_anew()
        assert await fresh.next() == "newer;"


async def test_who_was_told_of_it_hears_that_it_is_gone_also_when_a_newcomer_made_us_look() -> None:
    async with world() as w:
        w.change(1, "a")
        seen = Seen((await w.hub.watch([1]))[0])
        await seen.next()
        w.listening = False
        del w.there[1]
        stream, missing = await w.hub.watch([1])
        assert missing == [1]
        w.hub.leave(stream)
        assert await seen.next() == "gone 1;"


async def test_a_database_that_is_away_refuses_newcomers_and_is_asked_again_for_the_others() -> None:
    async with world() as w:
        w.change(1, "a")
        seen = Seen((await w.hub.watch([1]))[0])
        await seen.next()
        w.broken = True
        with pytest.raises(ApiError) as refused:
            await w.hub.watch([2])
        assert (refused.value.status, refused.value.code) == (503, "DATABASE_UNAVAILABLE")
        assert len(w.hub.streams) == 1
        w.change(1, "b")
        await asyncio.sleep(COALESCE_S)
        w.broken = False
        assert await seen.next() == "b;"


async def test_all_workers_are_watched_also_those_that_come_later() -> None:
    async with world() as w:
        w.change(1, "one")
        stream = await w.hub.watch_all()
        seen = Seen(stream)
        assert await seen.next() == "one;"
        w.change(2, "two")
        assert await seen.next() == "two;"
        del w.there[1]
        w.hub.look_anew()
        assert await seen.next() == "gone 1;"
        assert await Seen(await w.hub.watch_all()).next() == "two;"


async def test_closing_ends_every_stream_and_takes_no_new_one() -> None:
    async with world() as w:
        w.change(1, "a")
        seen = Seen((await w.hub.watch([1]))[0])
        await seen.next()
        w.hub.close()
        with pytest.raises(StopAsyncIteration):
            await seen.next()
        with pytest.raises(ApiError) as refused:
            await w.hub.watch([1])
        assert refused.value.code == "STOPPING"


async def test_a_reader_who_goes_away_is_noticed_without_a_word_being_sent() -> None:
    left = asyncio.Event()
    stream: Stream[int] = Stream(lambda key: b"")
    gone = asyncio.Event()
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    answer = EventStream(stream, left.set, retry_ms=3000, ping_s=SOON)
    serving = asyncio.create_task(answer({"type": "http"}, receive, send))
    await asyncio.sleep(0.01)
    gone.set()
    async with asyncio.timeout(SOON):
        await serving
    assert left.is_set()
    assert sent[1]["body"] == b"retry: 3000\n\n"


async def test_a_reader_who_takes_nothing_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.event_stream.SEND_S", 0.05)
    left = asyncio.Event()
    stream: Stream[int] = Stream(lambda key: b"")
    stream.put(1, Picture(b"a"))

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(SOON)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message.get("body") == b"a":
            await asyncio.sleep(SOON)  # its buffers are full

    async with asyncio.timeout(SOON / 2):
        await EventStream(stream, left.set, retry_ms=3000, ping_s=SOON)({"type": "http"}, receive, send)
    assert left.is_set()


async def test_silence_is_broken_by_pings() -> None:
    stream: Stream[int] = Stream(lambda key: b"")
    frames = stream.frames(PING, 0.01)
    assert [await anext(frames) for _ in range(2)] == [PING, PING]


async def test_a_stream_lasts_no_longer_than_its_session() -> None:
    for ping_s in (0.01, 60.0):
        stream: Stream[int] = Stream(lambda key: b"", held=SignedIn("a", int(time.time()) + 1))
        async with asyncio.timeout(SOON):
            assert {frame async for frame in stream.frames(PING, ping_s)} <= {PING}


async def test_who_signs_out_ends_their_own_streams() -> None:
    async with world() as w:
        w.change(1, "a")
        soon = int(time.time()) + 60
        ann, ben = SignedIn("ann", soon), SignedIn("ben", soon)
        hers, his = [Seen((await w.hub.watch([1], who))[0]) for who in (ann, ben)]
        nobodys = Seen(await w.hub.watch_all())
        for seen in (hers, his, nobodys):
            await seen.next()
        w.hub.end("ann")
        with pytest.raises(StopAsyncIteration):
            await hers.next()
        w.change(1, "b")
        for seen in (his, nobodys):
            assert await seen.next() == "b;"


def test_a_session_that_was_left_is_remembered_for_as_long_as_its_cookie_would_last() -> None:
    now = 0.0
    left = SignedOut(lambda: now)
    left.add("a")
    now = LASTS_S - 1.0
    left.add("b")
    assert "a" in left and "b" in left
    now = LASTS_S + 1.0
    left.add("c")
    assert "a" not in left and "b" in left
    for number in range(REMEMBERED):
        left.add(str(number))
    assert "b" not in left and "0" in left
