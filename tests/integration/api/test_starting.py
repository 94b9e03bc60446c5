"""From a committed job to a workflow, also when Temporal is away, slow to come back, or was told twice."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio.client import WorkflowExecutionStatus, WorkflowHandle
from temporalio.common import SearchAttributeKey

from api.starting import Start, Starter
from contracts.ids import JobId, ObjectKey, VideoId, workflow_id
from contracts.steps import TranscodeRequest
from mirror import outbox, reads
from tests.integration.api.running import Api, TemporalServer, serving
from tests.support.eventually import eventually
from workflows import starting

VIDEO = b"not really a video, and nobody asks here"


async def upload(api: Api, **fields: str) -> dict[str, int]:
    answer = await api.http.put("/api/videos", params={"filename": "clip.mp4"} | fields, content=VIDEO)
    assert answer.status_code == 201, answer.text
    created: dict[str, int] = answer.json()
    return created


async def started(api: Api) -> list[bool]:
    rows = await api.rows("SELECT workflow_started_at FROM transcoding_jobs ORDER BY id")
    return [row["workflow_started_at"] is not None for row in rows]


def handle(api: Api, created: dict[str, int]) -> WorkflowHandle[object, object]:
    return api.temporal.get_workflow_handle(f"video-{created['video_id']}-job-{created['job_id']}")


async def registered(api: Api) -> None:
    """Wait until the API has told Temporal what workflows are searched by."""

    async def is_first() -> bool:
        await upload(api)
        return any(await started(api))

    await eventually(is_first, within=15, every=0.3)
    await api.change("DELETE FROM videos")


async def test_an_upload_starts_a_workflow_that_people_can_find(api: Api) -> None:
    await registered(api)
    created = await upload(api, title="Ä film", owner="ana", tier="creator")
    assert await started(api) == [True]
    found = await handle(api, created).describe()
    assert found.status is WorkflowExecutionStatus.RUNNING
    assert (found.workflow_type, found.task_queue) == ("TranscodeVideo", "vlog-orchestrate")
    attributes = {pair.key.name: pair.value for pair in found.typed_search_attributes}
    assert attributes["VideoId"] == str(created["video_id"])
    assert (attributes["VideoStatus"], attributes["Tier"]) == ("pending", 2)
    assert await found.static_summary() == "Ä film"
    priority = found.raw_description.workflow_execution_info.priority
    assert (priority.priority_key, priority.fairness_key) == (2, "ana")
    [event] = [e async for e in handle(api, created).fetch_history_events() if e.event_id == 1]
    payload = event.workflow_execution_started_event_attributes.input.payloads[0].data
    request = TranscodeRequest.model_validate_json(payload)
    assert (request.slug, request.owner, request.heartbeat_timeout_s) == ("a-film", "ana", 30.0)


async def test_uploads_while_temporal_is_away_are_accepted_and_start_when_it_comes(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "OLDER_THAN_S", 0.0)
    temporal = TemporalServer()
    async with serving(database_url, tmp_path / "storage", temporal_address=temporal.address) as api:
        first, second = await upload(api), await upload(api)
        assert await started(api) == [False, False]
        health = await api.http.get("/api/health")
        assert (health.status_code, health.json()["temporal"]["ok"]) == (503, False)
        assert health.json()["pending_jobs"] == 2
        await asyncio.to_thread(temporal.start)
        try:

            async def all_started() -> bool:
                return await started(api) == [True, True]

            await eventually(all_started, within=30)
            for created in (first, second):
                assert (await handle(api, created).describe()).status is WorkflowExecutionStatus.RUNNING
        finally:
            temporal.stop()


async def test_an_upload_does_not_wait_long_for_a_temporal_that_hangs(database_url: str, tmp_path: Path) -> None:
    silent = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    address = f"127.0.0.1:{silent.sockets[0].getsockname()[1]}"
    try:
        async with asyncio.timeout(10):
            async with serving(database_url, tmp_path / "storage", temporal_address=address) as api:
                await upload(api)
                assert await started(api) == [False]
    finally:
        silent.close()


async def test_starting_twice_or_after_the_end_is_the_same_start(api: Api) -> None:
    await registered(api)
    created = await upload(api)
    async with api.database.read() as session:
        video = await reads.video(session, VideoId(created["video_id"]))
    assert video is not None
    request = TranscodeRequest(
        video_id=VideoId(created["video_id"]),
        job_id=JobId(created["job_id"]),
        slug=video.slug,
        source_key=ObjectKey(video.source_key),
    )
    starter = Starter(api.database, api.temporal)
    assert await starter.start(request, "again") is Start.STARTED
    running = api.temporal.get_workflow_handle(workflow_id(request.video_id, request.job_id))
    run_id = (await running.describe()).run_id
    await running.terminate(rpc_timeout=timedelta(seconds=5))
    assert await starter.start(request, "after the end") is Start.STARTED
    assert (await running.describe()).run_id == run_id


async def test_several_starters_side_by_side_start_each_job_once(api: Api) -> None:
    await registered(api)
    created = [await upload(api) for _ in range(5)]
    runs = [(await handle(api, one).describe()).run_id for one in created]
    await api.change("UPDATE transcoding_jobs SET workflow_started_at = NULL")
    starters = [Starter(api.database, api.temporal) for _ in range(3)]
    await asyncio.gather(*(starter.start_left_over(older_than_s=0) for starter in starters))
    assert await started(api) == [True] * 5
    assert [(await handle(api, one).describe()).run_id for one in created] == runs


async def refusing(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make Temporal refuse what is uploaded from now on: nobody has registered this attribute."""
    await registered(api)
    monkeypatch.setattr(starting, "_VIDEO_ID", SearchAttributeKey.for_keyword("NobodyKnowsThis"))


async def test_jobs_that_temporal_refuses_fail_with_a_reason_and_hold_up_nobody(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    await refusing(api, monkeypatch)
    monkeypatch.setattr(outbox, "AT_ONCE", 2)
    refused = [await upload(api) for _ in range(2)]
    starter = Starter(api.database, api.temporal, settle_s=0)
    await starter.prepare()
    assert await starter.start_left_over(older_than_s=0) == 0
    for created in refused:
        video = (await api.http.get(f"/api/videos/{created['video_id']}")).json()
        assert (video["status"], video["error_code"]) == ("failed", "START_REFUSED")
        assert "NobodyKnowsThis" in video["error_message"]
        assert (await api.http.get(f"/api/jobs/{created['job_id']}")).json()["state"] == "failed"
    last = await upload(api)
    monkeypatch.undo()
    monkeypatch.setattr(outbox, "AT_ONCE", 2)
    assert await starter.start_left_over(older_than_s=0) == 1
    assert (await handle(api, last).describe()).status is WorkflowExecutionStatus.RUNNING


async def test_a_refusal_while_temporal_is_still_learning_our_attributes_is_tried_again(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    await refusing(api, monkeypatch)
    created = await upload(api)
    starter = Starter(api.database, api.temporal, settle_s=60)
    await starter.prepare()
    assert await starter.start_left_over(older_than_s=0) == 0
    assert (await api.http.get(f"/api/videos/{created['video_id']}")).json()["status"] == "pending"
    monkeypatch.undo()
    assert await starter.start_left_over(older_than_s=0) == 1
