"""Hears the bell of `mirror.events.notify`: one connection that only listens, however many want to know."""

import asyncio
import json
import random
from collections.abc import Callable
from typing import Any

import asyncpg
import structlog
from sqlalchemy import make_url

from mirror.events import CHANNEL
from mirror.sessions import CONNECT_TIMEOUT_S

log = structlog.get_logger(__name__)

FIRST_WAIT_S, LONGEST_WAIT_S = 0.25, 10.0
# A server that vanished without a word is noticed by asking it for one.
PROOF_OF_LIFE_S = 30.0

Heard = Callable[[str, int | str], None]  # topic, id


class Listener:
    """Listens until it is cancelled, and connects again whenever the connection is lost.

    A bell rung while nobody listened is not heard later: `on_connected` is told each time, and looks at everything.
    """

    def __init__(self, url: str, heard: Heard, on_connected: Callable[[], None]) -> None:
        self._heard, self._on_connected = heard, on_connected
        # What the pool's connections are made from, without the pool: its connections come and go.
        to = make_url(url)
        _, self._to = to.get_dialect()().create_connect_args(to)
        self.is_connected = False

    async def run(self) -> None:
        wait_s = FIRST_WAIT_S
        while True:
            try:
                await self._listen()
            except Exception as error:  # whatever it was, nobody else would listen again
                if self.is_connected:
                    wait_s = FIRST_WAIT_S
                self.is_connected = False
                log.warning("not_listening", error=str(error) or type(error).__name__, again_in_s=wait_s)
            # Not all processes at the same moment: they lost the same server.
            await asyncio.sleep(wait_s * random.uniform(0.75, 1.25))
            wait_s = min(wait_s * 2, LONGEST_WAIT_S)

    async def _listen(self) -> None:
        """Listen until the connection is lost, which is always an error."""
        lost = asyncio.Event()
        settings = {"application_name": "vlog-listening"}
        connection = await asyncpg.connect(**self._to, timeout=CONNECT_TIMEOUT_S, server_settings=settings)
        try:
            connection.add_termination_listener(lambda _: lost.set())
            await connection.add_listener(CHANNEL, self._on_bell)
            self.is_connected = True
            self._on_connected()
            while True:
                try:
                    async with asyncio.timeout(PROOF_OF_LIFE_S):
                        await lost.wait()
                    raise ConnectionResetError("Postgres closed the connection")
                except TimeoutError:
                    await connection.execute("SELECT 1", timeout=CONNECT_TIMEOUT_S)
        finally:
            connection.terminate()

    def _on_bell(self, connection: Any, pid: int, channel: str, payload: object) -> None:
        try:
            told = json.loads(str(payload))
            topic, about = told["topic"], told["id"]
        except (ValueError, TypeError, KeyError):
            log.warning("bell_not_understood", payload=str(payload)[:200])
            return
        if isinstance(topic, str) and isinstance(about, int | str):
            self._heard(topic, about)
