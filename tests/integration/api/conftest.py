from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from api import growing
from tests.integration.api.growing_stage import Encoded, Stage, begin, make_encoded
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


@pytest.fixture(scope="session")
def encoded(tmp_path_factory: pytest.TempPathFactory) -> Encoded:
    return make_encoded(tmp_path_factory.mktemp("encoded"))


@pytest.fixture
async def stage(lonely_api: Api, encoded: Encoded, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    """Every look is a new one."""
    monkeypatch.setattr(growing, "LOOK_EVERY_S", 0.0)
    yield await begin(lonely_api, encoded)
