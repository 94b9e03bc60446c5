"""Heartbeats by the clock, for steps that have nothing to count while they wait."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from temporalio import activity

EVERY_S = 1.0  # a cancel is heard by the next beat, and stops ffmpeg within 2 s


@asynccontextmanager
async def pulsing(latest: Callable[[], Any] | None = None) -> AsyncIterator[None]:
    """Beat while the block runs, so that cancellation arrives and a dead worker is noticed.

    `latest` tells the progress so far, if there is any: Temporal keeps the last beat only, and a bare one would wipe it
    out. What is told is looked at by people, and twice as often.
    """
    every_s = EVERY_S / 2 if latest else EVERY_S

    async def beat() -> None:
        while True:
            progress = latest() if latest else None
            activity.heartbeat(*([progress] if progress else []))
            await asyncio.sleep(every_s)

    beating = asyncio.create_task(beat())
    try:
        yield
    finally:
        beating.cancel()


def told_before() -> Any:
    """Repeat what the attempt before has told, for one that does not know yet what is there."""
    return next(iter(activity.info().heartbeat_details), None)
