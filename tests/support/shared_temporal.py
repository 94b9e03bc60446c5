"""A Temporal per test process and configuration, for stories told to their end: they leave nothing behind in it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.service import RPCError

from runtime.temporal import ensure_search_attributes
from runtime.temporal_server import DYNAMIC_CONFIG
from tests.integration.api.running import TemporalServer
from tests.support.eventually import eventually

_running: dict[tuple[str, ...], TemporalServer] = {}


@asynccontextmanager
async def shared_temporal(*config: str) -> AsyncIterator[Client]:
    """Give a client of this process's Temporal, configured as the embedded one; who comes first starts it.

    `config` is added to its dynamic configuration: who asks for the same shares one.
    """
    if config not in _running:
        words = [word for value in (*DYNAMIC_CONFIG, *config) for word in ("--dynamic-config-value", value)]
        _running[config] = TemporalServer(arguments=words)
        _running[config].start()
    found: list[Client] = []

    async def answers() -> bool:  # an open port is not yet a healthy Temporal
        try:
            made = await Client.connect(_running[config].address, data_converter=pydantic_data_converter)
            await ensure_search_attributes(made)
        except (RPCError, RuntimeError):
            return False
        found.append(made)
        return True

    await eventually(answers, within=20)
    yield found[0]


def stop_shared_temporal() -> None:
    while _running:
        _running.popitem()[1].stop()
