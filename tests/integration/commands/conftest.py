"""An API with a real Postgres, a real Temporal, and a worker that runs workflows and writes their ends.

Nobody serves the other queues: what a workflow schedules there waits, as it would behind a long queue.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from temporalio.worker import Worker

from activities.ending import EndingSteps
from activities.failures import FailureInterceptor
from activities.removing import RemovalSteps
from api import telling
from contracts.queues import TaskQueue
from runtime.joining import Joined
from runtime.temporal import connect
from storage.local import LocalStore
from tests.integration.api.running import Api, TemporalServer, serving
from tests.integration.commands.story import registered
from workflows import starting
from workflows.encode_list import TranscodeList
from workflows.transcode_video import TranscodeVideo


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine Temporal may take longer than a person would wait; here nobody waits."""
    monkeypatch.setattr(telling, "TELL_S", 60.0)
    monkeypatch.setattr(starting, "START_S", 60.0)


@pytest.fixture(scope="module")
def temporal_server() -> Iterator[TemporalServer]:
    """A Temporal of its own: elsewhere workflows are left waiting, and our worker would take them up."""
    server = TemporalServer()
    server.start()
    yield server
    server.stop()


@pytest.fixture
async def quiet_api(database_url: str, tmp_path: Path, temporal_server: TemporalServer) -> AsyncIterator[Api]:
    """An API whose workflows nobody runs."""
    async with serving(database_url, tmp_path / "storage", temporal_address=temporal_server.address) as running:
        await registered(running)
        yield running


@pytest.fixture
async def api(quiet_api: Api) -> AsyncIterator[Api]:
    joined = Joined("", quiet_api.temporal.service_client.config.target_host, "default", "")
    client = await connect(joined)
    ending = EndingSteps(quiet_api.database)
    removal = RemovalSteps(LocalStore(quiet_api.root), quiet_api.database)
    steps: list[Callable[..., Any]] = [ending.finalize, ending.fail_job, removal.remove_partial]
    async with Worker(
        client,
        task_queue=TaskQueue.ORCHESTRATE,
        workflows=[TranscodeVideo, TranscodeList],
        activities=steps,
        interceptors=[FailureInterceptor()],
    ):
        yield quiet_api
