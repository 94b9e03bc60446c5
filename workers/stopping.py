"""How a worker is told to stop: once to finish what it has, twice to hand it back."""

import asyncio
import logging
import signal
from collections.abc import Callable

log = logging.getLogger(__name__)


def stop_on_signals(hand_back_now: Callable[[], None]) -> asyncio.Event:
    """Give what is set by the first SIGTERM or SIGINT; a second one calls `hand_back_now`."""
    stopping = asyncio.Event()

    def stop() -> None:
        if stopping.is_set():
            log.info("a second signal: handing everything back now")
            hand_back_now()
        stopping.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    return stopping
