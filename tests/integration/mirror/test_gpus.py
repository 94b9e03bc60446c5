"""Which GPUs the mirror calls idle, and what its rows say of a rendition that descends."""

from pathlib import Path
from typing import Any

from sqlalchemy import text

from contracts.end_steps import Finalize
from contracts.ids import JobId, VideoId
from contracts.plan import IdleGpu, Span, TranscodePlan
from contracts.queues import Pool
from contracts.states import Codec, StepName, StepOutcome, Tier, WorkerStatus, WorkerType
from contracts.steps import MakePlan, QualityProgress, StepProgress
from mirror import writes
from mirror.reads_workers import MOST_SLOTS, capacity, idle_gpus, jobs_beside, others_serve
from mirror.recorder import StepClaim, StepRecorder, WorkerIdentity
from mirror.registry import NewKey, NewWorker, admit
from mirror.sessions import Database
from mirror.writes import CreatedVideo, WorkerRegistration
from mirror.writes_steps import StepEnd, StepNews, WorkerLoad, record_step
from runtime.settings import Settings
from storage.local import LocalStore
from tests.integration.mirror.story import PLAN, claim, event_names, everything_in, job_row, planned, row, tell, upload
from tests.support.media_facts import source, toolbox
from workers.build import Parts, steps
from workers.idle_gpus import IdleGpus

GPU = WorkerIdentity("gpu-1", "gpu", slots={"vlog-gpu": 2})
ENCODERS = {"h264": "h264_nvenc"}
NOBODY = JobId(-1)

ON_GPU = PLAN.model_copy(
    update={
        "renditions": (
            PLAN.renditions[0].model_copy(update={"gpu": True, "encoder": "h264_nvenc"}),
            PLAN.renditions[1],
        ),
        "spans": (Span(first_segment=0, segments=2), Span(first_segment=2, segments=2)),
    }
)
DESCENDED = ON_GPU.model_copy(
    update={
        "renditions": (
            PLAN.renditions[0].model_copy(update={"generation": 1, "descended": "The device is gone."}),
            PLAN.renditions[1],
        )
    }
)


async def register(database: Database, worker: WorkerIdentity = GPU, **capabilities: Any) -> None:
    told = {"pools": ["gpu"], "slots": {"gpu": 2}, "encoders": ENCODERS} | capabilities
    async with database.write() as s:
        await writes.register_worker(s, WorkerRegistration(worker.worker_id, worker.worker_name, capabilities=told))


async def change(database: Database, values: str) -> None:
    async with database.write() as s:
        await s.execute(text(f"UPDATE workers SET {values}"))


async def idle(database: Database, but: JobId = NOBODY) -> list[int]:
    async with database.read() as s:
        return [gpu.slots for gpu in await idle_gpus(s, heard_within_s=60, but=but)]


async def learn(database: Database, video: CreatedVideo, plan: TranscodePlan) -> None:
    async with database.write() as s:
        await writes.record_plan(s, video.job_id, video.video_id, plan)


def span(video: CreatedVideo, first: int, *, queue: str = "vlog-gpu", generation: int = 0, **given: Any) -> StepClaim:
    name = f"720p.{generation}" if generation else "720p"
    plain = {"step_key": f"transcode:{first}+2:{name}", "generation": 0, "attempt": 1, "qualities": ("720p",)}
    plain |= {"span": Span(first_segment=first, segments=2), "queue": queue, **given}
    return claim(video, StepName.TRANSCODE, **plain)


def done(segments: int) -> StepProgress:
    each = QualityProgress(quality="720p", segments_total=2, segments_completed=segments, percent=50 * segments)
    return StepProgress(percent=50 * segments, qualities=(each,))


async def test_an_idle_gpu_is_seen_with_what_it_can_encode(database: Database) -> None:
    await register(database, encoders=ENCODERS | {"vp9": "vp9_qsv", "av1": 7})
    async with database.read() as s:
        assert await idle_gpus(s, heard_within_s=60, but=NOBODY) == [
            IdleGpu(slots=2, encoders={Codec.H264: "h264_nvenc"})
        ]


CANNOT = (
    "status = 'disabled'",
    "status = 'offline'",
    """pools_aside = '["gpu"]'""",
    "last_heartbeat = now() - interval '61 seconds'",
    "last_heartbeat = NULL",
    "capabilities = capabilities - 'encoders'",
    "capabilities = capabilities - 'slots'",
    "capabilities = NULL",
    """capabilities = '{"slots": {"gpu": 1}, "encoders": ["h264_nvenc"]}'""",
)


async def test_a_gpu_that_cannot_begin_now_is_not_idle(database: Database) -> None:
    for changed in CANNOT:
        await change(database, "status = 'idle', pools_aside = '[]'")
        await register(database)
        assert await idle(database) == [2]
        await change(database, changed)
        assert await idle(database) == [], changed


async def test_a_video_is_planned_for_a_gpu_that_was_heard_of_within_two_heartbeats(
    database: Database, tmp_path: Path
) -> None:
    await register(database)
    settings = Settings(home=tmp_path, worker_heartbeat_interval=60)
    parts = Parts(settings, LocalStore(tmp_path), database, toolbox(), StepRecorder(database, GPU), {})
    [plan] = [step for step in steps(Pool.IO, parts) if step.__name__ == "plan"]
    for seconds, given in ((100, True), (121, False)):
        await change(database, f"last_heartbeat = now() - interval '{seconds} seconds'")
        made = await plan(MakePlan(job_id=NOBODY, video_id=VideoId(1), facts=source()))
        assert any(rendition.gpu for rendition in made.renditions) is given, seconds


async def test_who_comes_over_http_counts_once_it_asks_for_work(database: Database) -> None:
    told = {"pools": ["cpu", "gpu"], "slots": {"cpu": 3, "gpu": 2}, "encoders": ENCODERS}

    async def counted() -> tuple[list[int], int, bool]:
        async with database.read() as s:
            cpu = await capacity(s, heard_within_s=60)
            return await idle(database), cpu.slots, await others_serve(s, "us", Pool.CPU, heard_within_s=60)

    async with database.write() as s:
        key = NewKey("hash", 1, "prefix")
        # Whatever it calls itself: it has a key.
        await admit(s, NewWorker("far", "far", WorkerType.LOCAL, capabilities=told), key, None)
    assert await counted() == ([], 0, False)
    await change(database, "asked_at = now() - interval '100 seconds'")
    assert await counted() == ([2], 3, True)
    await change(database, "asked_at = now() - interval '111 seconds'")
    assert await counted() == ([], 0, False)


async def test_a_rendition_has_its_slot_from_the_plan_to_its_last_span(database: Database) -> None:
    """Also before its first span is begun: else all of many videos that come at once would go to one GPU."""
    await register(database)
    video = await planned(database)
    await learn(database, video, ON_GPU)
    assert await idle(database) == [1]
    assert await idle(database, but=video.job_id) == [2]
    await tell(database, span(video, 0), worker=GPU)
    assert await idle(database) == [1]
    await tell(database, span(video, 0), done(2), worker=GPU, end=StepOutcome.COMPLETED)
    assert await idle(database) == [1]  # between two spans
    other = await planned(database, title="another")
    await learn(database, other, ON_GPU)
    assert await idle(database) == []
    await tell(database, span(video, 2), done(2), worker=GPU, end=StepOutcome.COMPLETED)
    assert await idle(database) == [1]
    async with database.write() as s:
        await s.execute(text("UPDATE transcoding_jobs SET paused_at = now() WHERE id = :id"), {"id": other.job_id})
    assert await idle(database) == [2]


async def test_while_postgres_is_away_no_gpu_is_idle(database: Database) -> None:
    away = Database("postgresql+asyncpg://nobody@127.0.0.1:9/nothing")
    try:
        assert await IdleGpus(away, heard_within_s=60)(NOBODY) == ()
    finally:
        await away.close()


async def test_what_a_gpu_failed_is_told_and_begins_anew_in_the_rows(database: Database) -> None:
    await register(database)
    video = await planned(database)
    await learn(database, video, ON_GPU)
    await tell(database, span(video, 0), done(2), worker=GPU, end=StepOutcome.COMPLETED)
    failed: dict[str, Any] = {
        "end": StepOutcome.FAILED,
        "code": "GPU_FAILED",
        "sentence": "The device is gone.",
        "will_retry": True,
    }
    await tell(database, span(video, 2), done(1), worker=GPU, **failed)
    quality = "SELECT status, segments_completed FROM quality_progress WHERE job_id = :id AND quality = '720p'"
    assert await row(database, quality, id=video.job_id) == {"status": "pending", "segments_completed": 3}

    await learn(database, video, DESCENDED)
    await learn(database, video, DESCENDED)  # told twice is told once
    assert await row(database, quality, id=video.job_id) == {"status": "pending", "segments_completed": 0}
    assert (await event_names(database, video)).count("quality.descended") == 1

    cpu: dict[str, Any] = {"queue": "vlog-cpu", "generation": 1}
    await tell(database, span(video, 2, **cpu), done(2), end=StepOutcome.COMPLETED)
    # The GPU's first span does not make it whole.
    assert await row(database, quality, id=video.job_id) == {"status": "pending", "segments_completed": 2}
    job = await job_row(database, video)
    assert (job["last_error"], job["attempt_number"]) == (None, 1)
    await tell(database, span(video, 0, **cpu), done(2), end=StepOutcome.COMPLETED)
    assert await row(database, quality, id=video.job_id) == {"status": "completed", "segments_completed": 4}


async def test_a_descent_that_is_told_after_the_jobs_end_is_in_its_plan_and_changes_nothing_else(
    database: Database,
) -> None:
    """The end is written by an activity; a plan by the recorder, when Postgres lets it: it may be the slower one."""
    await register(database)
    video = await planned(database)
    await learn(database, video, ON_GPU)
    again = claim(video, StepName.PLAN, step_key="plan:1")
    await tell(database, again)
    ending = Finalize(
        job_id=video.job_id, video_id=video.video_id, duration_s=24, qualities=("720p", "360p"), notes=("A dull end.",)
    )
    async with database.write() as s:
        assert await writes.complete_job(s, ending)
    rows = await everything_in(database, "quality_progress", "job_steps", "videos")
    for plan in (DESCENDED, ON_GPU):
        late = StepNews(again, None, end=StepEnd(StepOutcome.COMPLETED), learned=(plan,))
        async with database.write() as s:
            await record_step(s, late, GPU, WorkerLoad(WorkerStatus.IDLE, None))
        job = await job_row(database, video)
        large = job["plan"]["renditions"][0]
        assert (large["gpu"], large["generation"], large["descended"]) == (False, 1, "The device is gone.")
        assert job["plan"]["notes"] == [*PLAN.notes, "A dull end."] and job["state"] == "completed"
    assert await everything_in(database, "quality_progress", "job_steps", "videos") == rows
    assert (await event_names(database, video)).count("quality.descended") == 1


async def test_a_step_that_vanished_with_its_gpu_is_closed_and_may_still_say_how_it_ended(database: Database) -> None:
    await register(database)
    video = await planned(database)
    await learn(database, video, ON_GPU)
    await tell(database, span(video, 0), done(1), worker=GPU)
    await learn(database, video, DESCENDED)
    step = "SELECT outcome, error_code FROM job_steps WHERE job_id = :id AND queue = 'vlog-gpu'"
    assert await row(database, step, id=video.job_id) == {"outcome": "lost", "error_code": None}
    await tell(database, span(video, 0), worker=GPU, end=StepOutcome.FAILED, code="GPU_FAILED", will_retry=True)
    assert await row(database, step, id=video.job_id) == {"outcome": "failed", "error_code": "GPU_FAILED"}
    job = await job_row(database, video)
    assert (job["last_error"], job["state"]) == (None, "unclaimed")
    assert "step.lost" not in await event_names(database, video), "it was heard until then, and has said how it ended"


async def test_a_step_whose_gpu_was_silent_for_long_is_told_as_lost_when_it_descends(database: Database) -> None:
    await register(database)
    video = await planned(database)
    await learn(database, video, ON_GPU)
    await tell(database, span(video, 0), done(1), worker=GPU)
    async with database.write() as s:
        await s.execute(text("UPDATE job_steps SET claim_expires_at = now() - interval '1 second'"))
    await learn(database, video, DESCENDED)
    told = [name for name in await event_names(database, video) if name in ("step.lost", "quality.descended")]
    assert told == ["step.lost", "quality.descended"]


async def test_a_workers_own_words_hold_up_nobody_else(database: Database) -> None:
    await register(database)
    for number, slots in enumerate(("x", 2.5, True, -1, {"a": 1}, None)):
        odd = WorkerIdentity(f"odd-{number}", "odd")
        await register(database, odd, slots={"gpu": slots, "cpu": slots})
    boaster = WorkerIdentity("boaster", "boaster")
    await register(database, boaster, slots={"gpu": 2_000_000_000, "cpu": 2_000_000_000})
    assert await idle(database) == [2, MOST_SLOTS]
    for number, builds in enumerate(("x", 7, {"build": "8.1"}, ["8.1", None, {"build": {}}, {"build": ""}, {}])):
        odd = WorkerIdentity(f"builder-{number}", "odd")
        await register(database, odd, slots={"cpu": 1}, ffmpeg=builds)
    for number in range(2):
        twice = [{"build": "8.1-abc"}, {"build": "8.1-abc"}, {"build": f"7.1-{number}"}]
        await register(database, WorkerIdentity(f"known-{number}", "known"), slots={"cpu": 1}, ffmpeg=twice)
    async with database.read() as s:
        seen = await capacity(s, heard_within_s=60)
    assert seen.each == (MOST_SLOTS, *[1] * 6)
    assert seen.builds == {"8.1-abc": 2, "7.1-0": 1, "7.1-1": 1}


async def test_a_job_shares_the_slots_with_those_that_do_not_let_it_pass(database: Database) -> None:
    tiers = (Tier.VIRAL, Tier.FREE, Tier.FREE, Tier.BULK, Tier.BULK)
    made = [await upload(database, tier=tier) for tier in tiers]
    async with database.write() as s:
        await s.execute(text("UPDATE transcoding_jobs SET paused_at = now() WHERE id = :id"), {"id": made[-1].job_id})

    async def beside(job_id: JobId) -> int:
        async with database.read() as s:
            return await jobs_beside(s, job_id)

    assert [await beside(each.job_id) for each in made] == [1, 3, 3, 4, 4]
    async with database.write() as s:
        await s.execute(text("UPDATE transcoding_jobs SET completed_at = now() WHERE tier = 'free'"))
    assert [await beside(made[0].job_id), await beside(made[3].job_id), await beside(NOBODY)] == [1, 2, 2]
