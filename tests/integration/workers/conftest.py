"""Temporals for the tests of workers: one of this process for those that end what they queue, else one's own."""

from collections.abc import AsyncIterator

import pytest
from temporalio.client import Client

from tests.replay.stories import temporal_for_stories
from tests.support.shared_temporal import shared_temporal


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with shared_temporal() as found:
        yield found


@pytest.fixture
async def own_client() -> AsyncIterator[Client]:
    async with temporal_for_stories() as found:
        yield found
