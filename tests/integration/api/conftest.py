from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.integration.api.running import Api, TemporalServer, serving


@pytest.fixture(scope="session")
def temporal_server() -> Iterator[TemporalServer]:
    server = TemporalServer()
    server.start()
    yield server
    server.stop()


@pytest.fixture
async def api(database_url: str, tmp_path: Path, temporal_server: TemporalServer) -> AsyncIterator[Api]:
    """An API with everything behind it."""
    async with serving(database_url, tmp_path / "storage", temporal_address=temporal_server.address) as running:
        yield running


@pytest.fixture
async def lonely_api(database_url: str, tmp_path: Path) -> AsyncIterator[Api]:
    """An API whose Temporal is away; for tests that start nothing."""
    async with serving(database_url, tmp_path / "storage") as running:
        yield running
