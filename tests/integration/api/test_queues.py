"""What waits in Temporal's queues, as people are shown it."""

import asyncio
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import Worker

from contracts.queues import TaskQueue
from tests.integration.api.running import Api, TemporalServer
from tests.support.eventually import eventually


@activity.defn
async def never_begun() -> None: ...


@workflow.defn(sandboxed=False)
class Asks:
    @workflow.run
    async def run(self) -> None:
        await asyncio.gather(
            *(
                workflow.start_activity(
                    never_begun, task_queue=TaskQueue.ANALYSIS, schedule_to_close_timeout=timedelta(seconds=60)
                )
                for _ in range(3)
            )
        )


async def test_each_queue_has_its_backlog_its_oldest_wait_and_who_serves_it(
    api: Api, temporal_server: TemporalServer
) -> None:
    own = f"asks-{api.port}"  # other tests share this Temporal
    client = await Client.connect(temporal_server.address)
    async with Worker(client, task_queue=own, workflows=[Asks]):
        asked = await client.start_workflow(Asks.run, id=own, task_queue=own)
        try:

            async def is_told() -> bool:
                items = (await api.http.get("/api/queues")).json()["items"]
                assert [item["queue"] for item in items] == list(TaskQueue)
                analysis = items[-1]
                assert (analysis["workers"], analysis["running"]) == (0, 0)
                return bool(analysis["backlog"] == 3 and analysis["oldest_wait_seconds"] > 0)

            await eventually(is_told, within=10)
        finally:
            await asked.terminate()


async def test_without_temporal_there_is_nothing_to_tell(lonely_api: Api) -> None:
    answer = await lonely_api.http.get("/api/queues")
    assert (answer.status_code, answer.json()["error"]) == (503, "TEMPORAL_UNAVAILABLE")
    assert answer.headers["retry-after"]
