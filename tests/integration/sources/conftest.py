"""Chart videos of every kind, and the way from one of them to a judgement."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from media.planning import PlanOptions
from media.tools import Toolbox, find_tools
from tests.support import judging
from tests.support.charts import Charts

Judge = Callable[..., Awaitable[judging.Outcome]]


@pytest.fixture(scope="session")
def tools() -> Toolbox:
    return asyncio.run(find_tools())


@pytest.fixture(scope="session")
def charts(tools: Toolbox, tmp_path_factory: pytest.TempPathFactory) -> Charts:
    return Charts(tools, tmp_path_factory.mktemp("charts"))


@pytest.fixture
def judge(tools: Toolbox, tmp_path: Path) -> Judge:
    """Judge one source; more than one call in a test gets a folder each."""
    calls = iter(range(100))

    async def run(
        source: Path,
        *,
        options: PlanOptions = judging.OPTIONS,
        first_segment: int = 0,
        tools: Toolbox = tools,
    ) -> judging.Outcome:
        folder = tmp_path / f"out{next(calls)}"
        return await judging.judge(tools, source, folder, options=options, first_segment=first_segment)

    return run
