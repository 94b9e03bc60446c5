"""Waiting for something that is about to be true."""

import asyncio
import time
from collections.abc import Awaitable, Callable

# `within` is what a quiet machine needs. A starved one gets more: that something is fast is never shown by waiting.
PATIENCE = 4


async def eventually(check: Callable[[], Awaitable[bool]], *, within: float, every: float = 0.1) -> None:
    """Ask until the answer is yes; fail when the time is up."""
    deadline = time.monotonic() + within * PATIENCE
    while not await check():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {PATIENCE} times {within} s: {check.__name__}")
        await asyncio.sleep(every)
