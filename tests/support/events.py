"""Reading server-sent events as a browser does."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

import httpx

PATIENCE_S = 60.0


@dataclass(frozen=True)
class Told:
    name: str
    data: Any


class Reader:
    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self.retry_ms: int | None = None
        self._lines = response.aiter_lines()

    async def next(self) -> Told:
        """Give the next event; raise StopAsyncIteration where the stream ends."""
        name = data = ""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                line = await anext(self._lines)
                field, _, value = line.partition(": ")
                match field:
                    case "event":
                        name = value
                    case "data":
                        data = value
                    case "retry":
                        self.retry_ms = int(value)
                    case "" if name:
                        return Told(name, json.loads(data))

    async def until(self, name: str, **fields: Any) -> Told:
        """Skip to an event with this name and these fields; pings alone do not make it wait for ever."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                told = await self.next()
                if told.name == name and fields.items() <= told.data.items():
                    return told


@asynccontextmanager
async def following(http: httpx.AsyncClient, path: str, **headers: str | bytes) -> AsyncIterator[Reader]:
    async with http.stream("GET", path, headers=cast(Any, headers)) as response:
        if response.status_code != 200:
            await response.aread()
        yield Reader(response)
