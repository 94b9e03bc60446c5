"""schemathesis on the worker API, for longer: `make test` sends a few requests of each kind, this some hundred."""

import asyncio

import pytest

from tests.integration.api.claiming import claimed, step
from tests.integration.api.conftest import api, temporal_server
from tests.integration.api.fuzzing import attack
from tests.integration.api.running import Api
from tests.integration.conftest import database_url, postgres

__all__ = ["api", "database_url", "postgres", "temporal_server"]

EXAMPLES = 100


@pytest.mark.parametrize("first", [2, 3])
async def test_the_worker_api_answers_as_its_document_says_two_thousand_times(api: Api, first: int) -> None:
    async with step(api):
        remote = await claimed(api)
        api.app.state.gateway.close()  # who asks for work is answered at once
        print(await asyncio.to_thread(attack, api, remote, examples=EXAMPLES, first=first))
