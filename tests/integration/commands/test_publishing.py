"""The flip: manifests follow the rows, a late attempt brings nothing back, and a late cancel does not stop it."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from temporalio.testing import ActivityEnvironment
from temporalio.worker import Worker

from activities.ending import EndingSteps
from activities.failures import FailureInterceptor
from activities.publishing import PublishSteps
from activities.removing import RemovalSteps
from contracts.end_steps import Finalize, Publish, VerifiedRenditions
from contracts.errors import FailureKind, NoPicture
from contracts.ids import JobId
from contracts.queues import TaskQueue
from mirror import reads, writes, writes_again
from mirror.sessions import Database
from mirror.writes_again import Again
from runtime.joining import Joined
from runtime.temporal import connect
from storage.local import LocalStore
from tests.integration.api.running import Api
from tests.integration.commands.story import events, job_row, rendition, upload
from tests.integration.mirror.story import planned
from tests.replay.fake_steps import FakeSteps
from tests.replay.stories import has_heard_of_the_cancel
from tests.support.eventually import eventually
from workflows.encode_list import TranscodeList
from workflows.transcode_video import TranscodeVideo


async def test_what_has_no_picture_is_refused_and_not_tried_for_ever(database: Database, tmp_path: Path) -> None:
    video = await planned(database)
    request = Publish(
        job_id=video.job_id, video_id=video.video_id, slug=video.slug, renditions=VerifiedRenditions(video=())
    )
    with pytest.raises(NoPicture):
        await ActivityEnvironment().run(PublishSteps(LocalStore(tmp_path), database).publish, request)
    assert NoPicture.kind is FailureKind.FATAL and not (tmp_path / "videos").exists()


async def test_a_late_publish_does_not_bring_back_what_a_retranscode_replaced(
    database: Database, tmp_path: Path
) -> None:
    video = await planned(database)
    publish = PublishSteps(LocalStore(tmp_path), database).publish
    master = tmp_path / "videos" / video.slug / "master.m3u8"

    async def flip(job_id: JobId, output: str) -> Publish:
        whole = VerifiedRenditions(video=(rendition(video.slug, "360p", output),))
        request = Publish(job_id=job_id, video_id=video.video_id, slug=video.slug, renditions=whole)
        await ActivityEnvironment().run(publish, request)
        async with database.write() as s:
            end = Finalize(job_id=job_id, video_id=video.video_id, duration_s=24, qualities=("360p",))
            assert await writes.complete_job(s, end)
        return request

    first = await flip(video.job_id, "r1")
    assert "r1/360p/playlist.m3u8" in master.read_text()
    async with database.write() as s:
        again = await writes_again.retranscode_video(s, video.video_id, Again())
    assert again is not None
    await flip(again.job_id, "r2")
    served = master.read_bytes()
    assert b"r2/360p/playlist.m3u8" in served and b"r1/" not in served

    await ActivityEnvironment().run(publish, first)  # its worker was thought dead
    assert master.read_bytes() == served
    async with database.read() as reading:
        [current] = (await reads.renditions(reading, video.video_id)).video
    assert current.prefix.endswith("/r2/360p/")


async def test_while_it_is_published_a_pause_is_refused_and_a_cancel_comes_too_late(
    quiet_api: Api,
) -> None:
    """The steps before it only answer; how the job ends is written by the real ones."""
    api, steps = quiet_api, FakeSteps("cancelled while publishing")
    ending, removal = EndingSteps(api.database), RemovalSteps(LocalStore(api.root), api.database)
    served = steps.by_queue() | {
        TaskQueue.ORCHESTRATE: [steps.publish, ending.finalize, ending.fail_job, removal.remove_partial]
    }
    client = await connect(Joined("", api.temporal.service_client.config.target_host, "default", ""))
    async with AsyncExitStack() as running:
        for queue in (TaskQueue.ORCHESTRATE, TaskQueue.PROBE, TaskQueue.IO, TaskQueue.CPU):
            told = [TranscodeVideo, TranscodeList] if queue is TaskQueue.ORCHESTRATE else []
            await running.enter_async_context(
                Worker(
                    client,
                    task_queue=queue,
                    workflows=told,
                    activities=served[queue],
                    interceptors=[FailureInterceptor()],
                    disable_eager_activity_execution=True,
                )
            )
        made = await upload(api)
        kept = api.root / "videos" / made.slug / "r1" / "360p" / "seg_00000.m4s"
        kept.parent.mkdir(parents=True)
        kept.write_bytes(b"what players fetch")

        async def is_being_published() -> bool:
            return steps.publishing.is_set()

        await eventually(is_being_published, within=60)
        late = await api.http.post(f"/api/jobs/{made.job_id}/pause")
        assert (late.status_code, late.json()["error"]) == (409, "JOB_ENDED")
        answer = await api.http.post(f"/api/jobs/{made.job_id}/cancel")
        assert answer.status_code == 200, answer.text
        assert answer.json()["cancel_requested_at"] and not answer.json()["cancelled_at"]
        handle = api.temporal.get_workflow_handle(made.workflow_id)

        await eventually(lambda: has_heard_of_the_cancel(handle), within=60)
        steps.let_go = True
        assert (await handle.result())["status"] == "ready"
        again = await api.http.post(f"/api/jobs/{made.job_id}/cancel")
    assert (again.status_code, again.json()["state"]) == (200, "completed")
    row = await job_row(api, made.job_id)
    assert (row["state"], row["video_status"], row["cancelled_at"]) == ("completed", "ready", None)
    assert kept.exists()
    told_of_the_job = [name for name in await events(api, made.job_id) if name.startswith("job.")]
    commands = ["job.paused", "job.pause_refused", "job.cancel_requested"]
    assert told_of_the_job == ["job.created", *commands, "job.succeeded"]
    [told_so] = await api.rows("SELECT message FROM job_events WHERE event = 'job.succeeded'")
    assert told_so["message"].endswith("The cancel came too late.")
