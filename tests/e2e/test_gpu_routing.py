"""GPU priority with real processes: an idle GPU takes it, a busy, silent or failing one costs no video.

Each history that comes of it is replayed on the spot; tests/replay keeps those of the same stories for later code.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowHistory

from contracts.ids import JobId, VideoId, workflow_id
from media.streams import verify_stream
from media.tools import Toolbox
from tests.e2e.conftest import make_clip
from tests.e2e.gpu_worker import NAME, gpu_worker
from tests.e2e.service import QUICK, Service
from tests.support.eventually import eventually
from tests.support.replaying import replay

RATE, SECONDS = 30, 5
LARGE, SMALL = "180p", "90p"
BEAT_S = 3  # a GPU has twice this to begin


@pytest.fixture(scope="module")
def source(tools: Toolbox, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("source") / "five.mp4"
    make_clip(tools, path, seconds=SECONDS, size="320x180")
    return path


@pytest.fixture(scope="module")
def gpu_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service without a GPU; the tests bring one."""
    running = Service(tmp_path_factory.mktemp("gpu") / "home")
    running.settings = QUICK | {
        "VLOG_LADDER": f"{LARGE}=200/64,{SMALL}=100/64",
        "VLOG_WORKER_HEARTBEAT_INTERVAL": str(BEAT_S),
    }
    running.start()
    try:
        yield running
    finally:
        code = running.stop()
        left = running.processes()
    assert code == 0 and left == []


async def ready(
    service: Service, tools: Toolbox, created: dict[str, Any], *, descended: bool = False
) -> dict[str, dict[str, Any]]:
    """Wait for a video, check that every rung is right, and say what the plan at its end says of each.

    The recorder may come to a plan that was changed on the way only after the job's end.
    """
    video = await service.ended(created["video_id"])
    assert video["status"] == "ready" and not video["missing"], video
    master = service.storage / "videos" / created["slug"] / "master.m3u8"
    report = await verify_stream(tools, master)
    assert [(rung.name.partition(".")[0], rung.frames) for rung in report.rungs] == [
        (LARGE, SECONDS * RATE),
        (SMALL, SECONDS * RATE),
    ]
    made: dict[str, dict[str, Any]] = {}

    async def told() -> bool:
        [row] = await service.query("SELECT plan FROM transcoding_jobs WHERE id = $1", created["job_id"])
        made.update((one["quality"], one) for one in json.loads(row["plan"])["renditions"])
        return not descended or bool(made[LARGE]["generation"])

    await eventually(told, within=20)
    return made


async def encoded(service: Service, job_id: int) -> list[tuple[str, str, str, str]]:
    """Tell who encoded: quality, queue, worker, outcome; how a step ended may be told after its job's end."""
    rows: list[Any] = []

    async def told() -> bool:
        rows[:] = await service.query(
            "SELECT qualities->>0 AS first, jsonb_array_length(qualities) AS n, queue, worker_name, outcome,"
            " finished_at FROM job_steps WHERE job_id = $1 AND step = 'transcode' ORDER BY id",
            job_id,
        )
        return bool(rows) and all(row["finished_at"] for row in rows)

    await eventually(told, within=20)
    assert all(row["n"] == 1 for row in rows if row["queue"] == "vlog-gpu")
    return [(row["first"], row["queue"], row["worker_name"], row["outcome"]) for row in rows]


async def replayed(service: Service, created: dict[str, Any]) -> WorkflowHistory:
    """Give a job's history, once the workflow has been seen to decide the same again."""
    client = await Client.connect(service.run["temporal_address"])
    name = workflow_id(VideoId(created["video_id"]), JobId(created["job_id"]))
    handle = client.get_workflow_handle(name)
    await handle.result()
    history = await handle.fetch_history()
    await replay(history)
    return history


async def events(service: Service, created: dict[str, Any]) -> set[int]:
    """Name the kinds of events in a job's history, which replays."""
    return {event.event_type for event in (await replayed(service, created)).events}


async def descents(service: Service, job_id: int) -> list[str]:
    found = await service.query(
        "SELECT message FROM job_events WHERE job_id = $1 AND event = 'quality.descended'", job_id
    )
    return [row["message"] for row in found]


def check_published(service: Service, slug: str) -> None:
    """Check that the manifests name what the CPU made, and nothing of the GPU's folder."""
    folder = service.storage / "videos" / slug
    for name in ("master.m3u8", "manifest.mpd"):
        text = (folder / name).read_text()
        assert f"r1/{LARGE}.1/" in text and f"r1/{LARGE}/" not in text
    assert (folder / "r1" / f"{LARGE}.1" / "init.mp4").exists()


async def test_without_a_gpu_nothing_waits(gpu_service: Service, tools: Toolbox, source: Path) -> None:
    created = await gpu_service.upload(source, title="no gpu")
    made = await ready(gpu_service, tools, created)
    assert not any(one["gpu"] or one["generation"] for one in made.values())
    assert {queue for _, queue, _, _ in await encoded(gpu_service, created["job_id"])} == {"vlog-cpu"}
    seen = await events(gpu_service, created)
    assert not seen & {EventType.EVENT_TYPE_TIMER_STARTED, EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT}


async def test_an_idle_gpu_takes_it_and_while_it_is_busy_the_cpu_does_at_once(
    gpu_service: Service, tools: Toolbox, source: Path, tmp_path: Path
) -> None:
    """Somebody else has the device's sessions at first: that is waited for, and costs no attempt."""
    service = gpu_service
    async with gpu_worker(service, tools, tmp_path / "device") as gpu:
        gpu.feels("full")
        first = await service.upload(source, title="on the gpu")

        async def is_seen(outcome: str) -> bool:
            steps = "SELECT 1 FROM job_steps WHERE job_id = $1 AND queue = 'vlog-gpu' AND outcome = $2"
            return bool(await service.query(steps, first["job_id"], outcome))

        await eventually(lambda: is_seen("partial"), within=60)
        gpu.feels("held")
        await eventually(lambda: is_seen("running"), within=60)
        second = await service.upload(source, title="beside it")
        made = await ready(service, tools, second)
        assert not any(one["gpu"] or one["generation"] for one in made.values())
        assert {queue for _, queue, _, _ in await encoded(service, second["job_id"])} == {"vlog-cpu"}
        assert EventType.EVENT_TYPE_TIMER_STARTED not in await events(service, second)

        gpu.feels("well")
        made = await ready(service, tools, first)
    assert (made[LARGE]["gpu"], made[LARGE]["encoder"], made[LARGE]["generation"]) == (True, "libx264", 0)
    assert not made[SMALL]["gpu"]
    steps = await encoded(service, first["job_id"])
    assert [step for step in steps if step[1] == "vlog-gpu"] == [
        (LARGE, "vlog-gpu", NAME, "partial"),
        (LARGE, "vlog-gpu", NAME, "completed"),
    ]
    assert [queue for quality, queue, _, _ in steps if quality == SMALL] == ["vlog-cpu"]
    on_gpu = "SELECT error_code, generation, attempt, tries FROM job_steps WHERE job_id = $1 AND queue = 'vlog-gpu'"
    told = await service.query(on_gpu + " ORDER BY generation", first["job_id"])
    assert [tuple(row) for row in told] == [("GPU_BUSY", 0, 1, 1), (None, 1, 1, 1)]
    later = "SELECT fields->>'code' AS code FROM job_events WHERE job_id = $1 AND event = 'job.retry_later'"
    assert [row["code"] for row in await service.query(later, first["job_id"])] == ["GPU_BUSY"]
    assert EventType.EVENT_TYPE_TIMER_STARTED in await events(service, first)


async def test_a_gpu_that_only_looks_idle_costs_twice_the_heartbeat_interval(
    gpu_service: Service, tools: Toolbox, source: Path, tmp_path: Path
) -> None:
    service = gpu_service
    async with gpu_worker(service, tools, tmp_path / "device") as gpu:
        gpu.kill()
        # It died right after a beat, however slow this machine is now.
        fresh = "UPDATE workers SET last_heartbeat = now() + interval '30 seconds' WHERE worker_name = $1"
        await service.query(fresh, NAME)
        created = await service.upload(source, title="silent gpu")
        made = await ready(service, tools, created, descended=True)
    assert (made[LARGE]["gpu"], made[LARGE]["generation"]) == (False, 1)
    assert {queue for _, queue, _, _ in await encoded(service, created["job_id"])} == {"vlog-cpu"}
    assert await descents(service, created["job_id"]) == [
        f"{LARGE} is encoded by the CPU, from its start. No GPU worker began it in time."
    ]
    check_published(service, created["slug"])
    # Temporal's own clock: it waited in the queue for as long as was promised, and no longer.
    history = (await replayed(service, created)).events
    [timed_out] = [e for e in history if e.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT]
    asked = timed_out.activity_task_timed_out_event_attributes.scheduled_event_id
    limit = history[asked - 1].activity_task_scheduled_event_attributes.schedule_to_start_timeout
    assert limit.ToTimedelta().total_seconds() == 2 * BEAT_S


async def test_what_a_gpu_fails_in_the_middle_the_cpu_makes_as_a_whole(
    gpu_service: Service, tools: Toolbox, source: Path, tmp_path: Path
) -> None:
    service = gpu_service
    async with gpu_worker(service, tools, tmp_path / "device") as gpu:
        gpu.feels("broken")
        created = await service.upload(source, title="failing gpu")
        made = await ready(service, tools, created, descended=True)
    assert (made[LARGE]["gpu"], made[LARGE]["generation"]) == (False, 1)
    steps = await encoded(service, created["job_id"])
    assert [step for step in steps if step[1] == "vlog-gpu"] == [(LARGE, "vlog-gpu", NAME, "failed")]
    assert len(await descents(service, created["job_id"])) == 1
    check_published(service, created["slug"])
    # The GPU had stored a segment; none of it is in what is published, and no try of the CPU's was used.
    tries = await service.query("SELECT max(tries) AS most FROM job_steps WHERE job_id = $1", created["job_id"])
    assert tries[0]["most"] == 1
    [gpus] = await service.query(
        "SELECT error_code, progress FROM job_steps WHERE job_id = $1 AND queue = 'vlog-gpu'", created["job_id"]
    )
    assert gpus["error_code"] == "GPU_FAILED"
    # Nothing is lost by it, so nobody is told of a failure.
    said = "SELECT DISTINCT event FROM job_events WHERE job_id = $1 AND event IN ('step.failed', 'step.retrying')"
    assert [row["event"] for row in await service.query(said, created["job_id"])] == ["step.retrying"]
    assert json.loads(gpus["progress"])["qualities"][0]["segments_completed"] >= 1
    [row] = await service.query(
        "SELECT status, progress_percent FROM quality_progress WHERE job_id = $1 AND quality = $2",
        created["job_id"],
        LARGE,
    )
    assert (row["status"], row["progress_percent"]) == ("completed", 100)
    await replayed(service, created)
