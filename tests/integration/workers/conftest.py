"""One Temporal for the tests of workers that queue things of their own."""

from collections.abc import AsyncIterator

import pytest
from temporalio.client import Client

from tests.replay.stories import temporal_for_stories


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with temporal_for_stories() as found:
        yield found
