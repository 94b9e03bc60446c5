"""A worker that is broken, or that people shut out, gets no more work; what it had moves on; and it comes back."""

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from media.tools import Toolbox
from tests.e2e.conftest import make_clip
from tests.e2e.service import QUICK, ROOT, Service
from tests.support.eventually import eventually

OTHER = "other"

# An ffmpeg that says what it is and fails at everything else, until a file `mended` lies beside it; with a file
# `paced` it reads at half the speed its source plays at.
MOODY = """#!/bin/sh
case " $* " in
*" -version "*|*" -encoders "*|*" -decoders "*|*" -filters "*|*" -demuxers "*) exec "{ffmpeg}" "$@" ;;
esac
[ -e "{folder}/mended" ] || exit 1
if [ -e "{folder}/paced" ]; then
    case " $* " in *" libx264 "*)
        for word do
            shift
            [ "$word" = -i ] && set -- "$@" -readrate 0.5
            set -- "$@" "$word"
        done ;;
    esac
fi
exec "{ffmpeg}" "$@"
"""

# An ffprobe that sees nothing while a file `blind` lies beside it.
BLIND = """#!/bin/sh
[ -e "{folder}/blind" ] && exit 1
exec "{ffprobe}" "$@"
"""


@dataclass
class Other:
    """A second worker, of all pools, whose ffmpeg does what the test says."""

    process: subprocess.Popen[bytes]
    folder: Path


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
        "VLOG_CPU_SLOTS": "2",
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


async def row_of(service: Service, *, other: bool = True) -> Any:
    rows = await service.query(
        "SELECT worker_id, status, last_heartbeat, current_job_id, quarantined_at, pools_aside FROM workers"
        f" WHERE worker_name {'=' if other else '<>'} $1",
        OTHER,
    )
    return rows[0] if rows else None


async def becomes(service: Service, status: str, *, other: bool = True) -> None:
    async def is_so() -> bool:
        row = await row_of(service, other=other)
        return row is not None and row["status"] == status

    await eventually(is_so, within=60)


DEEDS = {"disable": "PUT", "enable": "PUT", "revoke": "POST"}


async def command(service: Service, deed: str, *, other: bool = True) -> None:
    """Do something to a worker; wait until it has heard of it, by the second beat from now at the latest."""
    row = await row_of(service, other=other)
    async with httpx.AsyncClient(timeout=30) as http:
        answer = await http.request(DEEDS[deed], f"{service.url}/api/workers/{row['worker_id']}/{deed}")
    assert answer.status_code == 200, answer.text
    beats = [(await row_of(service, other=other))["last_heartbeat"]]

    async def has_heard() -> bool:
        beat = (await row_of(service, other=other))["last_heartbeat"]
        if beat != beats[-1]:
            beats.append(beat)
        return len(beats) > 2

    await eventually(has_heard, within=60)


async def audit(service: Service, worker_id: str) -> list[str]:
    rows = await service.query(
        "SELECT event FROM job_events WHERE job_id IS NULL AND actor = $1"
        " AND event IN ('worker.quarantined', 'worker.released') ORDER BY id",
        worker_id,
    )
    return [row["event"] for row in rows]


async def test_a_broken_worker_is_set_aside_and_every_video_ends_ready(
    gated_service: Service, other: Other, clip: Path
) -> None:
    service = gated_service
    await becomes(service, "idle")
    created = [await service.upload(clip, title=f"video {n}") for n in range(5)]
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
        return bool(json.loads((await row_of(service))["pools_aside"]) == ["cpu", "io"])

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
    await eventually(lambda: _has_beaten(service, now), within=30)
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


def encoders_of(worker: int) -> list[int]:
    """Name the processes that a worker has started and that live."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, IndexError):
            state, parent = (entry / "stat").read_text().rsplit(")", 1)[1].split()[:2]
            if int(parent) == worker and state != "Z":
                found.append(int(entry.name))
    return found


async def _has_beaten(service: Service, since: datetime) -> bool:
    return bool((await row_of(service))["last_heartbeat"] > since)
