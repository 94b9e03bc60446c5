"""A worker that dies, freezes or is told twice to stop, in the middle of its span; another one is there."""

import asyncio
import contextlib
import hashlib
import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from media.tools import Toolbox
from tests.e2e.conftest import make_clip
from tests.e2e.service import QUICK, Service
from tests.e2e.victim import VICTIM, Held, attempts, encoding_victim
from tests.support.counting import CountingFfmpeg
from tests.support.eventually import eventually

HEARTBEAT_S = 10

# While the file `poison` lies beside it, encoding kills the worker; not before the mirror has heard of the attempt.
POISON = """#!/bin/sh
case " $* " in *" libx264 "*) if [ -e "{folder}/poison" ]; then sleep 2; kill -9 $PPID; fi ;; esac
exec "{paced}" "$@"
"""


@pytest.fixture(scope="module")
def source(tools: Toolbox, tmp_path_factory: pytest.TempPathFactory) -> Path:
    # Six segments: with two workers of one slot each, two spans.
    path = tmp_path_factory.mktemp("source") / "twelve.mp4"
    make_clip(tools, path, seconds=12, size="320x180")
    return path


@pytest.fixture(scope="module")
def lone_service(tools: Toolbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One worker with one slot; the tests bring a second one, and do to it what they like."""
    folder = tmp_path_factory.mktemp("lone")
    # A span takes twelve seconds at least: what is done to its worker is done in the middle, on any machine.
    paced = CountingFfmpeg(folder / "paced", tools.pick(), pace=0.5)
    (folder / "ffmpeg").write_text(POISON.format(folder=folder, paced=paced.program))
    (folder / "ffmpeg").chmod(0o755)
    (folder / "ffprobe").symlink_to(tools.pick().ffprobe)
    running = Service(folder / "home")
    running.settings = QUICK | {
        "VLOG_LADDER": "180p=200/64",
        "VLOG_CPU_SLOTS": "1",
        "VLOG_FFMPEG": str(folder / "ffmpeg"),
        "VLOG_STEP_HEARTBEAT_TIMEOUT_SECONDS": str(HEARTBEAT_S),
        "VLOG_DRAIN_SECONDS": "50",
        "VLOG_WORKER_HEARTBEAT_INTERVAL": "3",
    }
    running.start()
    try:
        yield running
    finally:
        code = running.stop()
        left = running.processes()
    assert code == 0 and left == []


async def test_a_killed_workers_step_runs_again_elsewhere_within_twenty_seconds(
    lone_service: Service, source: Path
) -> None:
    async with encoding_victim(lone_service, source, "taken over") as held:
        held.process.kill()
        killed_at = datetime.now(UTC)
        video = await lone_service.ended(held.video_id, within=120)
        assert video["status"] == "ready"
    first, second = await attempts(lone_service, held)
    assert (first["outcome"], first["worker_name"]) == ("lost", VICTIM)
    assert (second["attempt"], second["outcome"]) == (2, "completed") and second["worker_name"] != VICTIM
    took = second["started_at"] - killed_at
    print("running again after", took)
    assert took < timedelta(seconds=2 * HEARTBEAT_S)
    assert second["tries"] == 2


async def test_a_zombie_that_wakes_up_late_changes_no_row_and_no_byte(lone_service: Service, source: Path) -> None:
    service = lone_service
    async with encoding_victim(service, source, "zombie") as held:
        held.process.send_signal(signal.SIGSTOP)
        video = await service.ended(held.video_id, within=120)
        assert video["status"] == "ready"
        await eventually(lambda: _is_all_over(service, held.job_id), within=60)
        before = await _everything(service, held)
        held.process.send_signal(signal.SIGCONT)
        woken_at = datetime.now(UTC)

        async def is_itself_again() -> bool:
            """It has noticed: the step is given up, its scratch is gone, and it tells of itself again."""
            left = list((service.storage / "scratch").glob(f"*/job{held.job_id}-*"))
            heard = await service.query(
                "SELECT 1 FROM workers WHERE worker_name = $1 AND last_heartbeat > $2 AND current_job_id IS NULL",
                VICTIM,
                woken_at,
            )
            return not left and bool(heard)

        await eventually(is_itself_again, within=90)
        assert await _everything(service, held) == before
        held.process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(held.process.wait, 60) == 0
        assert await _everything(service, held) == before


async def _is_all_over(service: Service, job_id: int) -> bool:
    rows = await service.query(
        "SELECT 1 FROM job_steps WHERE job_id = $1 AND step = 'storyboard' AND outcome = 'completed'", job_id
    )
    return bool(rows)


async def _everything(service: Service, held: Held) -> dict[str, Any]:
    """Take down every row and every byte of a video."""
    tables = {
        "videos": "id = $1",
        "transcoding_jobs": "video_id = $1",
        "video_qualities": "video_id = $1",
        "audio_renditions": "video_id = $1",
        "job_steps": "job_id IN (SELECT id FROM transcoding_jobs WHERE video_id = $1)",
        "quality_progress": "job_id IN (SELECT id FROM transcoding_jobs WHERE video_id = $1)",
        "job_events": "job_id IN (SELECT id FROM transcoding_jobs WHERE video_id = $1)",
    }
    rows = {
        table: [
            tuple(row) for row in await service.query(f"SELECT * FROM {table} WHERE {mine} ORDER BY id", held.video_id)
        ]
        for table, mine in tables.items()
    }
    folder = service.storage / "videos" / held.slug
    files = {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    return {"rows": rows, "files": files}


async def test_a_worker_told_twice_to_stop_hands_back_at_once_and_costs_no_attempt(
    lone_service: Service, source: Path
) -> None:
    async with encoding_victim(lone_service, source, "told twice") as held:
        held.process.send_signal(signal.SIGTERM)
        await asyncio.sleep(0.5)
        assert held.process.poll() is None, "it has time to drain"
        held.process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(held.process.wait, 30) == 0
        assert not _encoders_of(held.process.pid, held.job_id)
        video = await lone_service.ended(held.video_id, within=120)
        assert video["status"] == "ready"
    first, second = await attempts(lone_service, held)
    assert (first["outcome"], first["error_code"], first["worker_name"]) == ("partial", "DRAINED", VICTIM)
    assert (second["generation"], second["attempt"], second["outcome"]) == (1, 1, "completed")
    events = await lone_service.get(f"/api/jobs/{held.job_id}/events")
    assert "aborted:shutdown" in [event["event"] for event in events]
    [job] = await lone_service.query("SELECT attempt_number FROM transcoding_jobs WHERE id = $1", held.job_id)
    assert job["attempt_number"] == 1


def _encoders_of(worker: int, job_id: int) -> list[int]:
    """Name the encoders of a job that no living worker holds any more."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, IndexError):
            words = (entry / "cmdline").read_bytes()
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if f"/job{job_id}-transcode".encode() in words and parent in (1, worker, os.getpid()):
                found.append(int(entry.name))
    return found


async def test_a_file_that_kills_its_worker_every_time_fails_after_three(
    lone_service: Service, tools: Toolbox, tmp_path: Path
) -> None:
    service = lone_service
    source = tmp_path / "poison.mp4"
    make_clip(tools, source, seconds=2, size="320x180")
    poison = service.home.parent / "poison"
    poison.touch()
    try:
        created = await service.upload(source, title="poison")
        video = await service.ended(created["video_id"], within=240)
    finally:
        poison.unlink()
    assert (video["status"], video["error_code"]) == ("failed", "RETRIES_EXHAUSTED")
    rows = await service.query(
        "SELECT generation, attempt, outcome FROM job_steps WHERE job_id = $1 AND step = 'transcode' ORDER BY 1, 2",
        created["job_id"],
    )
    assert [(row["generation"], row["attempt"]) for row in rows] == [(0, 1), (0, 2), (0, 3)]
    assert [row["outcome"] for row in rows][:2] == ["lost", "lost"]
    [job] = await service.query(
        "SELECT attempt_number, max_attempts, state, last_error FROM transcoding_jobs j"
        " JOIN job_states s ON s.job_id = j.id WHERE j.id = $1",
        created["job_id"],
    )
    assert (job["attempt_number"], job["max_attempts"], job["state"]) == (3, 3, "failed")
    assert "/" not in job["last_error"]
