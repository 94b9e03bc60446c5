"""Cancel, pause, resume, priority: in the row, in Temporal, and when one of the two is away."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowExecutionStatus
from temporalio.worker import Worker

from api import telling
from contracts.ids import JobId, workflow_id
from contracts.queues import TaskQueue
from contracts.starting import Start
from mirror import reads, reads_commands, writes_commands
from mirror.outbox import Outbox
from runtime.joining import Joined
from runtime.temporal import connect
from tests.integration.api.running import Api, serving
from tests.integration.commands.story import events, in_state, job_row, upload
from tests.integration.mirror.story import upload as recorded
from tests.support.eventually import eventually
from workflows import starting
from workflows.encode_list import TranscodeList
from workflows.transcode_video import TranscodeVideo


@asynccontextmanager
async def workflows_run(api: Api) -> AsyncIterator[None]:
    client = await connect(Joined("", api.temporal.service_client.config.target_host, "default", ""))
    async with Worker(client, task_queue=TaskQueue.ORCHESTRATE, workflows=[TranscodeVideo, TranscodeList]):
        yield


async def test_a_cancelled_job_ends_in_both_places_and_leaves_nothing(api: Api) -> None:
    made = await upload(api)
    part = api.root / "videos" / made.slug / "r1" / "360p" / "seg_00000.m4s"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"half a video")

    answer = await api.http.post(f"/api/videos/{made.video_id}/cancel", headers={"X-Actor": "ana"})
    assert answer.status_code == 200, answer.text

    async def is_over() -> bool:
        described = await api.temporal.get_workflow_handle(made.workflow_id).describe()
        return described.status is WorkflowExecutionStatus.CANCELED

    await eventually(is_over, within=60)
    row = await job_row(api, made.job_id)
    assert (row["state"], row["video_status"], row["video_error_code"]) == ("cancelled", "failed", "CANCELLED")
    assert await events(api, made.job_id) == ["job.created", "job.cancel_requested", "job.cancelled"]
    [asked] = await api.rows("SELECT actor FROM job_events WHERE event = 'job.cancel_requested'")
    assert asked["actor"] == "ana"
    assert not part.exists()


async def test_a_cancel_of_what_temporal_no_longer_runs_ends_the_job(api: Api) -> None:
    made = await upload(api)
    await api.temporal.get_workflow_handle(made.workflow_id).terminate()
    assert (await job_row(api, made.job_id))["state"] == "unclaimed"
    answer = await api.http.post(f"/api/jobs/{made.job_id}/cancel")
    assert (answer.status_code, answer.json()["state"]) == (200, "cancelled")


async def test_a_command_that_nobody_hears_is_noted_and_carried_out_when_somebody_does(
    quiet_api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telling, "TELL_S", 1.0)
    made = await upload(quiet_api)
    answer = await quiet_api.http.post(f"/api/jobs/{made.job_id}/pause")
    assert (answer.status_code, answer.json()["error"]) == (503, "TEMPORAL_UNAVAILABLE")
    assert answer.headers["Retry-After"]
    row = await job_row(quiet_api, made.job_id)
    assert (row["state"], row["untold"]) == ("paused", ["pause"])

    async def is_told() -> bool:
        return (await job_row(quiet_api, made.job_id))["command_at"] is None

    monkeypatch.setattr(telling, "TELL_S", 60.0)
    async with workflows_run(quiet_api):
        await eventually(is_told, within=60)
    handle = quiet_api.temporal.get_workflow_handle(made.workflow_id)
    heard = [event async for event in handle.fetch_history_events() if event.event_type == _UPDATED]
    assert len(heard) == 1


_UPDATED = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED


async def test_with_temporal_away_what_it_never_had_is_commanded_in_the_row_alone(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starting, "START_S", 1.0)
    async with serving(database_url, tmp_path / "storage") as lonely:
        made = await upload(lonely)
        for name, state in (("pause", "paused"), ("resume", "unclaimed"), ("pause", "paused")):
            answer = await lonely.http.post(f"/api/jobs/{made.job_id}/{name}")
            assert (answer.status_code, answer.json()["state"]) == (200, state)
        async with lonely.database.read() as s:
            assert await reads.unstarted_jobs(s, older_than_s=0) == []  # a paused one waits for its resume
        answer = await lonely.http.post(f"/api/jobs/{made.job_id}/cancel")
        assert (answer.status_code, answer.json()["state"]) == (200, "cancelled")
        assert (await job_row(lonely, made.job_id))["video_status"] == "failed"


async def test_a_cancel_while_the_job_is_being_started_reaches_the_workflow(api: Api) -> None:
    made = await in_state(api, "unstarted")
    await api.http.post(f"/api/jobs/{made.job_id}/cancel")
    assert (await job_row(api, made.job_id))["state"] == "cancelled"

    async def is_over() -> bool:
        described = await api.temporal.get_workflow_handle(made.workflow_id).describe()
        return described.status is WorkflowExecutionStatus.CANCELED

    await eventually(is_over, within=60)


async def test_a_cancel_that_temporal_had_nobody_to_tell_reaches_a_start_that_comes_later(api: Api) -> None:
    """The request that made the job was slow to start it: the cancel was told, and noted as heard, before."""
    video = await recorded(api.database)
    await api.http.post(f"/api/jobs/{video.job_id}/cancel")

    async def is_noted() -> bool:
        row = await job_row(api, video.job_id)
        return bool(row["state"] == "cancelled" and row["command_at"] is None)

    await eventually(is_noted, within=60)
    outbox = Outbox(api.database, starting.TranscodeStarter(api.temporal))
    assert await outbox.start(video.request, "slow") is Start.STARTED
    handle = api.temporal.get_workflow_handle(workflow_id(video.video_id, video.job_id))

    async def is_over() -> bool:
        return (await handle.describe()).status is WorkflowExecutionStatus.CANCELED

    await eventually(is_over, within=20)


async def test_pause_and_resume_may_come_again_and_again(api: Api) -> None:
    made = await upload(api)
    for name in ("pause", "pause", "resume", "resume", "pause", "resume"):
        assert (await api.http.post(f"/api/jobs/{made.job_id}/{name}")).status_code == 200, name
    told = [name for name in await events(api, made.job_id) if name != "job.created"]
    assert told == ["job.paused", "job.resumed", "job.paused", "job.resumed"]
    row = await job_row(api, made.job_id)
    assert (row["paused_at"], row["command_at"], row["untold"]) == (None, None, [])


async def test_a_pause_that_came_too_late_is_taken_back(quiet_api: Api) -> None:
    made = await upload(quiet_api)
    async with quiet_api.database.write() as s:
        wish = await writes_commands.pause_job(s, JobId(made.job_id), None)
    assert wish is not None
    async with quiet_api.database.write() as s:
        await writes_commands.withdraw_pause(s, wish)
    row = await job_row(quiet_api, made.job_id)
    assert (row["state"], row["command_at"]) == ("unclaimed", None)
    assert "job.pause_refused" in await events(quiet_api, made.job_id)


async def test_wishes_that_nobody_hears_hold_up_no_other(quiet_api: Api) -> None:
    """As many as are told at once may be of workflows that fail: whoever comes after them has a turn too."""
    made = [await upload(quiet_api) for _ in range(3)]
    for each in made:
        async with quiet_api.database.write() as s:
            await writes_commands.pause_job(s, JobId(each.job_id), None)
    await quiet_api.change("UPDATE transcoding_jobs SET workflow_started_at = now()")
    seen: set[int] = set()
    for _ in range(40):
        async with quiet_api.database.read() as s:
            seen |= {wish.job_id for wish in await reads_commands.untold_wishes(s, 1)}
    assert seen == {each.job_id for each in made}


async def test_a_newer_wish_is_not_taken_for_the_one_that_was_told(quiet_api: Api) -> None:
    made = await upload(quiet_api)
    job_id = JobId(made.job_id)
    async with quiet_api.database.write() as s:
        older = await writes_commands.pause_job(s, job_id, None)
    async with quiet_api.database.write() as s:
        await writes_commands.cancel_job(s, job_id, None)
    assert older is not None
    async with quiet_api.database.write() as s:
        await writes_commands.told(s, older)
    async with quiet_api.database.read() as s:
        newer = await reads_commands.wish(s, job_id)
    assert newer is not None and "cancel" in newer.untold


async def test_a_change_of_priority_moves_what_waits_and_keeps_whose_turn_it_is(api: Api) -> None:
    made = await upload(api, owner="ana", tier="free")
    handle = api.temporal.get_workflow_handle(made.workflow_id)

    async def waits() -> bool:
        return len((await handle.describe()).raw_description.pending_activities) == 1

    await eventually(waits, within=60)
    answer = await api.http.post(f"/api/jobs/{made.job_id}/priority", json={"tier": "viral"})
    assert (answer.status_code, answer.json()["tier"]) == (200, "viral")
    described = (await handle.describe()).raw_description
    [probe] = described.pending_activities
    assert probe.priority.priority_key == 1
    priority = described.workflow_execution_info.priority
    assert (priority.priority_key, priority.fairness_key) == (1, "ana")
    refused = await api.http.post(f"/api/jobs/{made.job_id}/priority", json={"tier": "golden"})
    assert (refused.status_code, refused.json()["error"]) == (422, "INVALID_REQUEST")


async def test_commands_need_the_secret_where_one_is_set(database_url: str, tmp_path: Path) -> None:
    async with serving(database_url, tmp_path / "storage", admin_secret="s3cret") as closed:
        jobs = [f"/api/jobs/1/{name}" for name in ("cancel", "pause", "resume", "priority")]
        videos = [f"/api/videos/1/{name}" for name in ("cancel", "retry", "retranscode", "restore")]
        for method, path in (*(("POST", path) for path in (*jobs, *videos)), ("DELETE", "/api/videos/1")):
            body = {"tier": "viral"} if path.endswith("priority") else None
            assert (await closed.http.request(method, path, json=body)).status_code == 401, path
            answer = await closed.http.request(method, path, json=body, headers={"X-Admin-Secret": "s3cret"})
            assert answer.status_code == 404, path
