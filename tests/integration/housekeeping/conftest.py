"""A Temporal of its own: these tests terminate, forget and count workflows, and others' would be in the way."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.service import RPCError

from runtime.joining import Joined
from runtime.temporal import connect, ensure_search_attributes
from storage.local import LocalStore
from tests.integration.api.running import TemporalServer
from tests.support.eventually import eventually


@pytest.fixture(scope="session")
def own_temporal() -> Iterator[TemporalServer]:
    server = TemporalServer()
    server.start()
    yield server
    server.stop()


@pytest.fixture
async def client(own_temporal: TemporalServer) -> AsyncIterator[Client]:
    found: list[Client] = []

    async def answers() -> bool:  # an open port is not yet a healthy Temporal
        try:
            made = await connect(Joined("", own_temporal.address, "default", ""))
            await ensure_search_attributes(made)
        except (RPCError, RuntimeError):
            return False
        found.append(made)
        return True

    await eventually(answers, within=60)
    [made] = found
    yield made
    async for run in made.list_workflows("ExecutionStatus = 'Running'"):
        await made.get_workflow_handle(run.id).terminate()


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "storage")
