"""schemathesis on the worker API: what its document promises holds for whatever is sent."""

import asyncio

from tests.integration.api.claiming import claimed, step
from tests.integration.api.running import Api

EXAMPLES = 8  # of each operation, well formed and ill formed; `make chaos` sends many more


async def test_the_worker_api_answers_as_its_document_says_whatever_is_sent(api: Api) -> None:
    # Not above: schemathesis takes a second to load, in every process that only looks for its tests.
    from tests.integration.api.fuzzing import attack

    async with step(api):
        remote = await claimed(api)
        before = set(api.files())
        api.app.state.gateway.close()  # who asks for work is answered at once
        counted = await asyncio.to_thread(attack, api, remote, examples=EXAMPLES)
        print(counted)
        assert counted.get("200") and counted.get("401") and counted.get("422") and counted.get("403")
        assert {name for name in set(api.files()) - before if not name.startswith("videos/")} == set()
