"""Rows that were garbled or deleted come back as they were, from Temporal's histories alone."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from temporalio import activity, workflow
from temporalio.client import Client, WorkflowFailureError
from temporalio.worker import Worker

from activities.chores.scratch import ScratchChore
from activities.ending import EndingSteps
from activities.failures import FailureInterceptor
from activities.history import HistoryReader, step_types
from activities.publishing import ManifestSteps, PublishSteps
from activities.rebuilding import MirrorRebuild
from activities.recording import RecordingInterceptor
from contracts.end_steps import VerifiedRenditions
from contracts.end_steps import VerifyRenditions as Verify
from contracts.housekeeping import KeepHouse
from contracts.layout import PLAYLIST
from contracts.media import FrameRate, SourceFacts
from contracts.queues import TaskQueue
from contracts.renditions import VideoRendition
from contracts.states import Codec, Tier
from contracts.steps import (
    PauseJob,
    Probe,
    QualityProgress,
    SetPriority,
    StepProgress,
    StepRequest,
    TranscodedSpan,
    TranscodeSpan,
)
from mirror.outbox import Outbox
from mirror.recorder import StepRecorder
from mirror.sessions import Database
from mirror.writes import CreatedVideo
from runtime.settings import Settings
from storage.local import LocalStore
from tests.integration.housekeeping.test_drift import change, name_of, outbox
from tests.integration.mirror.story import WORKER, register, rows_of, upload
from tests.replay import outgrown_stories
from tests.replay.fake_steps import FakeSteps
from tests.replay.stories import COMMANDS
from tests.support.eventually import eventually
from workers.mirror import reader_types
from workflows.encode_list import TranscodeList
from workflows.transcode_video import TranscodeVideo

__all__ = ["outbox"]

TABLES = {
    "transcoding_jobs": "id = :job",
    "quality_progress": "job_id = :job",
    "job_steps": "job_id = :job",
    "video_qualities": "job_id = :job",
    "videos": "id = :video",
}
# Moments of writing, not of happening; and how far a beat had come, which a history does not keep of ended steps.
NOT_COMPARED = {"id", "updated_at", "created_at", "progress"}
HOLDER = ("worker_id", "claimed_at", "claim_expires_at")
# Of what a cancel stopped, too.
HOW_FAR = {"progress_percent", "segments_completed"}
SOON = timedelta(seconds=10)


class Story(FakeSteps):
    """Fake encoders between real writers of rows."""

    def __init__(self, story: str, store: LocalStore, database: Database) -> None:
        super().__init__(story)
        self._store, self._database = store, database
        self.encoding, self.go_on = asyncio.Event(), asyncio.Event()

    @activity.defn
    async def probe(self, request: Probe) -> SourceFacts:
        # A job that fails within a blink may end before its only claim was ever written …
        await self._is_written(request)
        return await super().probe(request)

    async def _is_written(self, request: StepRequest) -> None:
        async def claimed() -> bool:
            query = "SELECT 1 FROM job_steps WHERE job_id = :job AND step_key = :key AND generation = :generation"
            asked = {"job": request.job_id, "key": request.step_key, "generation": request.generation}
            return bool(await rows_of(self._database, query, **asked))

        await eventually(claimed, within=20)

    @activity.defn
    async def transcode_span(self, request: TranscodeSpan) -> TranscodedSpan:
        done = QualityProgress(quality="720p", segments_total=4, segments_completed=1, percent=25)
        activity.heartbeat(StepProgress(percent=12, frames=180, qualities=(done,)))
        self.encoding.set()
        while self.story == "running" and not self.go_on.is_set():
            await asyncio.sleep(0.1)
            activity.heartbeat(StepProgress(percent=12, frames=180, qualities=(done,)))
        await self._is_written(request)  # … and one that is handed back at once may be overtaken by its next generation
        return await super().transcode_span(request)

    @activity.defn
    async def verify(self, request: Verify) -> VerifiedRenditions:
        return VerifiedRenditions(
            video=tuple(
                VideoRendition(
                    quality=rung.quality,
                    prefix=f"videos/{request.slug}/{request.output}/{rung.quality}/",
                    width=rung.width,
                    height=rung.height,
                    codec=Codec.H264,
                    bitrate_kbps=rung.video_kbps,
                    codecs="avc1.64001f",
                    frame_rate=FrameRate(num=30),
                    timescale=30,
                    frame_duration=1,
                    segment_frames=180,
                    frames=600,
                    size_bytes=1000,
                    peak_bandwidth=2,
                    average_bandwidth=1,
                )
                for rung in request.plan.renditions
            )
        )


@asynccontextmanager
async def working(database: Database, client: Client, store: LocalStore, story: str) -> AsyncIterator[Story]:
    """Workers whose steps are recorded as in production."""
    steps = Story(story, store, database)
    queues = {queue: list(served) for queue, served in steps.by_queue().items()}
    real = EndingSteps(database)
    served = {"publish": PublishSteps(store, database).publish, "finalize": real.finalize, "fail_job": real.fail_job}
    queues["vlog-orchestrate"] = [served.get(one.__name__, one) for one in queues["vlog-orchestrate"]]
    manifests = ManifestSteps(store)
    queues["vlog-io"] = [manifests.write_manifests if s.__name__ == "write_manifests" else s for s in queues["vlog-io"]]
    recorder = StepRecorder(database, WORKER)
    recording = asyncio.create_task(recorder.run())
    named = await Client.connect(
        client.service_client.config.target_host, data_converter=client.data_converter, identity=WORKER.worker_name
    )
    async with AsyncExitStack() as running:
        for queue, activities in queues.items():
            worker = Worker(
                named,
                task_queue=queue,
                workflows=[TranscodeVideo, TranscodeList] if queue == TaskQueue.ORCHESTRATE else [],
                activities=activities,
                interceptors=[RecordingInterceptor(recorder), FailureInterceptor(first_delay_s=0.05)],
                max_heartbeat_throttle_interval=timedelta(milliseconds=50),
            )
            await running.enter_async_context(worker)
        yield steps
    await recorder.close()
    recording.cancel()


@pytest.fixture
def rebuilding(database: Database, client: Client, store: LocalStore, tmp_path: Path) -> MirrorRebuild:
    types = step_types(reader_types(Settings(home=tmp_path), store, database))
    return MirrorRebuild(database, client, store, HistoryReader(client, types))


async def picture(database: Database, video: CreatedVideo) -> dict[str, list[dict[str, Any]]]:
    """Read every row of a job, without what a history cannot know."""
    found = {}
    for table, where in TABLES.items():
        names = {":job": video.job_id, ":video": video.video_id}
        key = next(name for name in names if name in where)
        rows = await rows_of(database, f"SELECT * FROM {table} WHERE {where}", **{key[1:]: names[key]})
        # Whether the step that writes an unhappy end is a row of its own is a race that its recorder may lose.
        rows = [row for row in rows if row.get("step") != "finalize"]
        rows = [{**row, "percent": None} if row.get("outcome") in ("partial", "cancelled") else row for row in rows]
        # So is whether that step ever held a job that ended well, or was cancelled.
        rows = [
            row | dict.fromkeys(HOLDER) if row.get("completed_at") or row.get("cancelled_at") else row for row in rows
        ]
        kept = [{name: value for name, value in row.items() if name not in NOT_COMPARED} for row in rows]
        found[table] = sorted(
            kept, key=lambda row: (str(row.get("step_key") or row.get("quality")), row.get("generation") or 0)
        )
    return found


def assert_same(before: dict[str, list[dict[str, Any]]], after: dict[str, list[dict[str, Any]]]) -> None:
    [job] = before["transcoding_jobs"]
    lost = HOW_FAR if job["cancelled_at"] else set()
    for table, rows in before.items():
        assert len(rows) == len(after[table]), table
        for old, new in zip(rows, after[table], strict=True):
            for name, value in old.items():
                if name in lost:
                    continue
                same = value == new[name]
                if isinstance(value, datetime) and isinstance(new[name], datetime):
                    same = abs(value - new[name]) < SOON
                assert same, f"{table}.{name}: {value!r} became {new[name]!r}"


async def garble(database: Database, video: CreatedVideo) -> None:
    job = {"id": video.job_id}
    await change(database, "DELETE FROM job_steps WHERE job_id = :id AND step = 'transcode'", **job)
    await change(database, "UPDATE job_steps SET outcome = 'failed', worker_id = 'x' WHERE job_id = :id", **job)
    await change(database, "DELETE FROM quality_progress WHERE job_id = :id AND quality = '360p'", **job)
    await change(database, "UPDATE quality_progress SET status = 'failed', progress_percent = 3", **{})
    await change(database, "DELETE FROM video_qualities")
    await change(
        database,
        "UPDATE transcoding_jobs SET completed_at = NULL, last_error = 'x', progress_percent = 1, plan = NULL, "
        "claimed_at = NULL, claim_expires_at = NULL, worker_id = 'x' WHERE id = :id",
        **job,
    )
    await change(database, "UPDATE videos SET status = 'failed', error_code = 'X', error_message = 'x'")


async def is_encoding(database: Database) -> bool:
    return bool(await rows_of(database, "SELECT 1 FROM job_steps WHERE step = 'transcode'"))


async def ended(database: Database, client: Client, outbox: Outbox, store: LocalStore, story: str) -> CreatedVideo:
    await register(database)
    video = await upload(database)
    async with working(database, client, store, story) as steps:
        await outbox.start(video.request, "My holiday")
        handle = client.get_workflow_handle_for(TranscodeVideo.run, name_of(video))
        if command := COMMANDS.get(story):
            # What happened in the blink before a cancel may never be told.
            await eventually(lambda: is_encoding(database), within=60)
            await asyncio.wait_for(command(handle, steps), 60)
        try:
            await handle.result()
        except WorkflowFailureError:
            assert story in FAILING
    return video


FAILING = ("unreadable", "cancelled while encoding")


@pytest.mark.parametrize("story", ["success", "drained", "paused", *FAILING, outgrown_stories.DAYS])
async def test_a_garbled_job_that_has_ended_comes_back(
    database: Database,
    client: Client,
    outbox: Outbox,
    store: LocalStore,
    rebuilding: MirrorRebuild,
    monkeypatch: pytest.MonkeyPatch,
    story: str,
) -> None:
    monkeypatch.setattr(workflow.Info, "is_continue_as_new_suggested", lambda _: story == outgrown_stories.DAYS)
    with outgrown_stories.hurried(story):
        video = await ended(database, client, outbox, store, story)
    before = await picture(database, video)
    assert before["videos"][0]["status"] == ("failed" if story in FAILING else "ready")
    runs = {row["generation"] for row in before["job_steps"] if row["step"] == "plan"}
    assert len(runs) == {"unreadable": 0, outgrown_stories.DAYS: 2}.get(story, 1)
    await garble(database, video)
    assert await rebuilding.rebuild(name_of(video))
    assert_same(before, await picture(database, video))
    assert await rebuilding.rebuild(name_of(video)), "twice is once"
    assert_same(before, await picture(database, video))


async def test_rows_that_are_gone_altogether_come_back(
    database: Database, client: Client, outbox: Outbox, store: LocalStore, rebuilding: MirrorRebuild
) -> None:
    video = await ended(database, client, outbox, store, "success")
    before = await picture(database, video)
    await change(database, "DELETE FROM videos")
    assert await rebuilding.workflow_of(video.job_id) == name_of(video)
    assert await rebuilding.rebuild(name_of(video))
    after = await picture(database, video)
    for row in (*before["videos"], *after["videos"]):
        row.pop("source_filename")  # no step needs it, so Temporal never heard of it
    assert_same(before, after)


async def test_a_database_begun_anew_gives_no_number_twice_and_leaves_older_sources(
    database: Database, client: Client, outbox: Outbox, store: LocalStore, rebuilding: MirrorRebuild
) -> None:
    oldest = (await upload(database, "Long forgotten by Temporal")).request.source_key
    video = await ended(database, client, outbox, store, "success")
    await store.put_bytes(oldest, b"a film")
    os.utime(store.path(oldest), (0, 0))
    await change(database, "DELETE FROM videos")
    for sequence in ("videos_id_seq", "transcoding_jobs_id_seq"):
        await change(database, f"ALTER SEQUENCE {sequence} RESTART")
    assert await rebuilding.rebuild(name_of(video))
    assert (await ScratchChore(database, store).remove_scratch(KeepHouse())).count == 0
    assert await store.stat(oldest) is not None
    new = await upload(database)
    assert new.video_id > video.video_id and new.job_id > video.job_id


async def test_a_running_job_comes_back_and_goes_on_to_its_end(
    database: Database, client: Client, outbox: Outbox, store: LocalStore, rebuilding: MirrorRebuild
) -> None:
    await register(database)
    video = await upload(database)
    async with working(database, client, store, "running") as steps:
        await outbox.start(video.request, "My holiday")
        await asyncio.wait_for(steps.encoding.wait(), 60)

        async def shown() -> bool:
            rows = await rows_of(database, "SELECT outcome FROM job_steps WHERE job_id = :id", id=video.job_id)
            [job] = await rows_of(database, "SELECT progress_percent FROM transcoding_jobs")
            beside = [row["outcome"] for row in rows]
            # Six for what is done; of the encode's ninety a quarter of 720p, which is four fifths of the pixels.
            return (beside.count("running"), job["progress_percent"]) == (1, 24)

        await eventually(shown, within=60)
        before = await picture(database, video)
        await garble(database, video)
        assert await rebuilding.rebuild(name_of(video))
        after = await picture(database, video)
        assert after["videos"][0]["status"] == "processing"
        assert_same(before, after)
        steps.go_on.set()
        await client.get_workflow_handle(name_of(video)).result()
    last = await picture(database, video)
    assert last["videos"][0]["status"] == "ready"
    assert {row["outcome"] for row in last["job_steps"]} == {"completed"}
    assert len(last["video_qualities"]) == 2


async def test_a_paused_job_comes_back_paused_and_what_people_want_counts_for_more(
    database: Database, client: Client, outbox: Outbox, rebuilding: MirrorRebuild
) -> None:
    """Else nobody could resume it: a job that is not paused stays as it is."""
    video = await upload(database)

    async def rebuilt() -> tuple[bool, str]:
        assert await rebuilding.rebuild(name_of(video))
        [job] = await rows_of(database, "SELECT paused_at, tier FROM transcoding_jobs")
        return job["paused_at"] is not None, job["tier"]

    async with Worker(client, task_queue=TaskQueue.ORCHESTRATE, workflows=[TranscodeVideo, TranscodeList]):
        await outbox.start(video.request, "My holiday")
        handle = client.get_workflow_handle_for(TranscodeVideo.run, name_of(video))
        await handle.execute_update(TranscodeVideo.pause, PauseJob())
        await handle.execute_update(TranscodeVideo.set_priority, SetPriority(tier=Tier.VIRAL))
        assert await rebuilt() == (True, "viral")
        await change(database, "DELETE FROM videos")
        assert await rebuilt() == (True, "viral")
        await change(database, "UPDATE transcoding_jobs SET paused_at = NULL, tier = 'hobby'")
        await change(database, """UPDATE transcoding_jobs SET untold = '["pause", "priority"]'""")
        assert await rebuilt() == (False, "hobby")
        await change(database, "UPDATE transcoding_jobs SET untold = '[]', paused_at = now()")
        await handle.execute_update(TranscodeVideo.resume)
        assert await rebuilt() == (False, "viral")


async def test_renditions_whose_files_are_gone_are_not_named_again(
    database: Database, client: Client, outbox: Outbox, store: LocalStore, rebuilding: MirrorRebuild
) -> None:
    video = await ended(database, client, outbox, store, "success")
    await store.delete(f"videos/{video.slug}/r1/360p/{PLAYLIST}")
    await garble(database, video)
    assert await rebuilding.rebuild(name_of(video))
    assert [row["quality"] for row in (await picture(database, video))["video_qualities"]] == ["720p"]


async def test_a_job_that_temporal_does_not_know_is_left_as_it_is(
    database: Database, rebuilding: MirrorRebuild
) -> None:
    video = await upload(database)
    async with database.read() as s:
        before = (await s.execute(text("SELECT * FROM transcoding_jobs"))).mappings().one()
    assert not await rebuilding.rebuild(name_of(video))
    async with database.read() as s:
        assert (await s.execute(text("SELECT * FROM transcoding_jobs"))).mappings().one() == before
