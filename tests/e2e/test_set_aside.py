"""A worker that is broken, or that people shut out, gets no more work; what it had moves on; and it comes back."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from media.tools import Toolbox
from tests.e2e.conftest import make_clip
from tests.e2e.moody import (
    BLIND,
    MOODY,
    OTHER,
    Other,
    audit,
    becomes,
    command,
    encoders_of,
    has_beaten,
    row_of,
    settled,
)
from tests.e2e.service import QUICK, ROOT, Service
from tests.support.eventually import eventually
from workers.quarantine import STREAK


@pytest.fixture(scope="module")
def gated_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    running = Service(tmp_path_factory.mktemp("gated") / "home")
    running.settings = QUICK | {
        "VLOG_LADDER": "180p=200/64",
        "VLOG_CPU_SLOTS": "1",
        "VLOG_WORKER_HEARTBEAT_INTERVAL": "1",
        "VLOG_QUARANTINE_SECONDS": "1",
        # A worker that is only slow must not be taken for dead: tries are counted here.
        "VLOG_STEP_HEARTBEAT_TIMEOUT_SECONDS": "30",
        # Nor must a video run out of tries on a machine so slow that one step is all five of a row of failures.
        "VLOG_MAX_RETRY_ATTEMPTS": str(STREAK + 1),
    }
    running.start()
    try:
        yield running
    finally:
        code = running.stop()
        left = running.processes()
    assert code == 0 and left == []


@pytest.fixture(scope="module")
def other(gated_service: Service, tools: Toolbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Other]:
    folder = tmp_path_factory.mktemp("moody")
    (folder / "ffmpeg").write_text(MOODY.format(folder=folder, ffmpeg=tools.pick().ffmpeg))
    (folder / "ffmpeg").chmod(0o755)
    (folder / "ffprobe").write_text(BLIND.format(folder=folder, ffprobe=tools.pick().ffprobe))
    (folder / "ffprobe").chmod(0o755)
    environment = gated_service.environment | {
        "VLOG_WORKER_NAME": OTHER,
        "VLOG_FFMPEG": str(folder / "ffmpeg"),
        "VLOG_QUARANTINE_SECONDS": "0.1",
        "VLOG_LOG_FILES": "false",
    }
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen([sys.executable, "-m", "workers"], cwd=ROOT, env=environment, stdout=log, stderr=log)
    yield Other(process, folder)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0


@pytest.fixture(scope="module")
def clip(tools: Toolbox, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("clip") / "two.mp4"
    make_clip(tools, path, seconds=2, size="320x180")
    return path


@pytest.fixture(scope="module")
def long_clip(tools: Toolbox, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three segments: at the other worker's pace eight seconds pass between its first and its end."""
    path = tmp_path_factory.mktemp("clip") / "six.mp4"
    make_clip(tools, path, seconds=6, size="320x180")
    return path


async def test_a_broken_worker_is_set_aside_and_every_video_ends_ready(
    gated_service: Service, other: Other, clip: Path
) -> None:
    service = gated_service
    await becomes(service, "idle")
    created = [await service.upload(clip, title=f"video {n}") for n in range(3)]
    for video in created:
        ended = await service.ended(video["video_id"], within=240)
        assert ended["status"] == "ready", ended
    broken = await row_of(service)
    assert broken["quarantined_at"] is not None
    jobs = [video["job_id"] for video in created]
    taken = await service.query(
        "SELECT step, outcome, error_code, tries FROM job_steps"
        " WHERE job_id = ANY($1) AND worker_id = $2 AND queue = 'vlog-cpu'",
        jobs,
        broken["worker_id"],
    )
    print("the broken worker took", [tuple(row) for row in taken])
    assert 1 <= len(taken) <= 5
    assert {row["outcome"] for row in taken} == {"partial"}
    tries = await service.query("SELECT max(tries) FROM job_steps WHERE job_id = ANY($1)", jobs)
    assert tries[0]["max"] == 1, "a broken worker costs nobody a try"
    assert await audit(service, broken["worker_id"]) == ["worker.quarantined"]

    (other.folder / "mended").touch()

    async def is_back() -> bool:
        return (await row_of(service))["quarantined_at"] is None

    await eventually(is_back, within=60)
    assert await audit(service, broken["worker_id"]) == ["worker.quarantined", "worker.released"]
    assert other.process.poll() is None


async def test_a_worker_that_passes_its_own_tests_is_set_aside_after_five_failures_and_every_video_ends_ready(
    gated_service: Service, other: Other, clip: Path
) -> None:
    """The healthy worker comes when the row of failures is whole: until then nobody takes a step out of it."""
    service = gated_service
    (other.folder / "mended").touch()
    await becomes(service, "idle")
    await settled(service)
    await command(service, "disable", other=False)
    worker_id = (await row_of(service))["worker_id"]
    before = await audit(service, worker_id)
    (other.folder / "sick").touch()
    created = [await service.upload(clip, title=f"unlucky {n}") for n in range(2)]

    async def ran() -> list[tuple[str, str | None]]:
        rows = await service.query(
            "SELECT outcome, error_code FROM job_steps"
            " WHERE worker_id = $1 AND queue = 'vlog-cpu' AND job_id = ANY($2) ORDER BY id",
            worker_id,
            [video["job_id"] for video in created],
        )
        steps = [(row["outcome"], row["error_code"]) for row in rows]
        # What was on its way when it stopped asking goes back as it came.
        assert steps.count(("partial", "DRAINED")) <= 1, steps
        return [step for step in steps if step != ("partial", "DRAINED")]

    async def stands_aside() -> bool:
        # After two more tests, which failed: a worker that went on asking would have taken what waits.
        tests = len((other.folder / "tests").read_bytes()) if (other.folder / "tests").exists() else 0
        return tests >= STREAK + 2 and (await row_of(service))["quarantined_at"] is not None

    await eventually(stands_aside, within=60)
    five = await ran()
    assert len(five) == STREAK and {outcome for outcome, _ in five} == {"failed"}, five
    assert {code for _, code in five} <= {"ENCODER_CRASHED", "OUTPUT_INCOMPLETE"}, five
    assert (
        "no more work for cpu, probe until a test is clean: its last 5 steps failed"
        in (other.folder / "log").read_text()
    )

    await command(service, "enable", other=False)
    for video in created:
        ended = await service.ended(video["video_id"], within=120)
        assert ended["status"] == "ready", ended
    assert await ran() == five, "there is no sixth"
    assert await audit(service, worker_id) == [*before, "worker.quarantined"]

    (other.folder / "sick").unlink()

    async def is_back() -> bool:
        return (await row_of(service))["quarantined_at"] is None

    await eventually(is_back, within=30)
    assert await audit(service, worker_id) == [*before, "worker.quarantined", "worker.released"]


async def test_the_only_worker_with_a_broken_ffprobe_fails_no_upload(
    gated_service: Service, other: Other, clip: Path
) -> None:
    service = gated_service
    (other.folder / "mended").touch()
    await becomes(service, "idle")
    await command(service, "disable", other=False)
    (other.folder / "blind").touch()
    created = await service.upload(clip, title="seen by nobody")

    async def stands_aside() -> bool:
        return bool(json.loads((await row_of(service))["pools_aside"]) == ["cpu", "io", "probe"])

    await eventually(stands_aside, within=60)
    assert (await service.get(f"/api/videos/{created['video_id']}"))["status"] in ("pending", "processing")
    (other.folder / "blind").unlink()
    assert (await service.ended(created["video_id"], within=120))["status"] == "ready"
    steps = await service.query(
        "SELECT error_code, tries FROM job_steps WHERE job_id = $1 AND step = 'probe' ORDER BY generation",
        created["job_id"],
    )
    assert steps[0]["error_code"] == "WORKER_BROKEN" and {row["tries"] for row in steps} == {1}
    assert json.loads((await row_of(service))["pools_aside"]) == []
    await command(service, "enable", other=False)


@dataclass(frozen=True)
class ShutOut:
    deed: str
    status: str
    sentence: str


DISABLED = ShutOut("disable", "disabled", "The worker was disabled.")
REVOKED = ShutOut("revoke", "offline", "The worker was revoked.")


@pytest.mark.parametrize("told", [DISABLED, REVOKED], ids=lambda told: told.deed)
async def test_the_step_of_a_worker_that_is_shut_out_moves_at_no_cost_and_it_works_again_when_let_in(
    gated_service: Service, other: Other, long_clip: Path, told: ShutOut
) -> None:
    service = gated_service
    (other.folder / "mended").touch()
    (other.folder / "paced").touch()
    await becomes(service, "idle")
    await command(service, "disable", other=False)
    # Whoever was shut out by the deed before works again.
    created = await service.upload(long_clip, title="moves")
    held: list[Any] = []

    async def is_held() -> bool:
        held[:] = await service.query(
            "SELECT step_key, generation, worker_name FROM job_steps WHERE job_id = $1 AND step = 'transcode'"
            " AND outcome = 'running'",
            created["job_id"],
        )
        return bool(held)

    await eventually(is_held, within=120, every=0.1)
    assert held[0]["worker_name"] == OTHER, "a disabled worker gets nothing"
    await command(service, "enable", other=False)
    first = service.storage / "videos" / created["slug"] / "r1" / "180p" / "seg_00000.m4s"

    async def is_kept() -> bool:
        return bool(first.exists())

    await eventually(is_kept, within=60)
    await command(service, told.deed)

    async def has_stopped() -> bool:
        return not encoders_of(other.process.pid)

    await eventually(has_stopped, within=1)  # left alone it would go on for longer than any patience
    video = await service.ended(created["video_id"], within=120)
    assert video["status"] == "ready"

    rows: list[Any] = []

    async def is_told() -> bool:
        rows[:] = await service.query(
            "SELECT generation, attempt, tries, outcome, error_code, error_message, worker_name FROM job_steps"
            " WHERE job_id = $1 AND step_key = $2 AND generation >= $3 ORDER BY generation, attempt",
            created["job_id"],
            held[0]["step_key"],
            held[0]["generation"],
        )
        return len(rows) >= 2 and bool(rows[0]["error_code"])

    await eventually(is_told, within=30)
    assert (rows[0]["outcome"], rows[0]["error_code"], rows[0]["worker_name"]) == ("partial", "DRAINED", OTHER)
    assert rows[0]["error_message"] == told.sentence
    assert (rows[-1]["attempt"], rows[-1]["tries"], rows[-1]["outcome"]) == (1, 1, "completed")
    assert rows[-1]["worker_name"] != OTHER
    events = await service.get(f"/api/jobs/{created['job_id']}/events")
    assert "aborted:shutdown" in [event["event"] for event in events]

    assert other.process.poll() is None
    row, now = await row_of(service), datetime.now(UTC)
    assert (row["status"], row["current_job_id"]) == (told.status, None)
    await eventually(lambda: has_beaten(service, now), within=30)
    assert (await row_of(service))["status"] == told.status
    await command(service, "enable")
    await becomes(service, "idle")


async def test_a_worker_that_was_let_in_again_is_given_work(gated_service: Service, other: Other, clip: Path) -> None:
    """After all that the tests before this one did to it."""
    service = gated_service
    (other.folder / "mended").touch()
    (other.folder / "paced").unlink(missing_ok=True)
    await becomes(service, "idle")
    await command(service, "disable", other=False)
    again = await service.upload(clip, title="works again")
    assert (await service.ended(again["video_id"], within=120))["status"] == "ready"
    [made] = await service.query("SELECT processed_by_worker_name FROM transcoding_jobs WHERE id = $1", again["job_id"])
    assert made["processed_by_worker_name"] == OTHER
    await command(service, "enable", other=False)
