"""Is it one file, or the storage as a whole? The second is nobody's failure, and is waited for without end.

Whoever finds it away keeps its step for a while and looks again and again. So a short outage ends here; and a machine
that alone has lost its way to the storage does not take one step after the other from those that have not
(docs/decisions/0019-storage-that-is-away-is-waited-for.md).
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from temporalio import activity

from contracts.errors import ScratchFull, StorageAway, VlogError

Check = Callable[[], Awaitable[None]]  # raises what is wrong with the storage as a whole

CHECK_S = 10.0  # a storage that takes longer for two bytes is away
KEEP_S = 30.0  # a step, before it is handed back
LOOK_EVERY_S = 3.0
BACK_IN_S = 1.0  # with which a step comes again whose storage has come back


async def outage(check: Check) -> StorageAway | None:
    """Tell that the storage is away, after waiting a little for it; None when it answers at once."""
    said = await _wrong(check)
    if not said:
        return None
    away = StorageAway(f"The storage is away: {said}")
    # All that failed together would come back together.
    away.retry_after_s = StorageAway.retry_after_s * random.uniform(0.9, 1.1)
    loop = asyncio.get_running_loop()
    until = loop.time() + min(KEEP_S, _left_s() - CHECK_S - LOOK_EVERY_S)
    while loop.time() < until and not activity.is_worker_shutdown():
        await asyncio.sleep(LOOK_EVERY_S)
        if not await _wrong(check):
            away.retry_after_s = BACK_IN_S
            break
    return away


def is_tried_for_ever() -> bool:
    """Tell a step that no attempt is counted of, like `publish`: Temporal repeats it at no cost to the history."""
    policy = activity.info().retry_policy
    return policy is not None and policy.maximum_attempts == 0


def _left_s() -> float:
    """Say how long this attempt may still run: to be cut off would cost a try."""
    info = activity.info()
    if info.start_to_close_timeout is None:
        return KEEP_S + CHECK_S + LOOK_EVERY_S
    return (info.started_time + info.start_to_close_timeout - datetime.now(UTC)).total_seconds()


async def _wrong(check: Check) -> str:
    try:
        async with asyncio.timeout(CHECK_S):
            await check()
    except TimeoutError:
        return "It did not answer in time."
    except ScratchFull:
        return ""  # it answers
    except VlogError as error:
        return error.sentence
    except Exception as error:  # of a disk that fails while scratch is given back; whatever it is, it is no answer
        return f"{getattr(error, 'strerror', None) or type(error).__name__}."
    return ""
