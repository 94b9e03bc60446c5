"""Commands on a video that is being made, and on one that people watch: everything real, encoders paced."""

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from media.tools import Toolbox
from tests.e2e.conftest import RATE, make_clip
from tests.e2e.service import Service
from tests.support.eventually import eventually

SECONDS, SEGMENT = 16, 2 * RATE


@pytest.fixture(scope="module")
def paced_clip(tools: Toolbox, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight seconds of work, as the encoders are paced."""
    path = tmp_path_factory.mktemp("paced") / "paced.mp4"
    make_clip(tools, path, seconds=SECONDS, size="640x360")
    return path


@pytest.fixture(scope="module")
def short_clip(tools: Toolbox, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("short") / "short.mp4"
    make_clip(tools, path, seconds=4, size="854x480")
    return path


async def post(service: Service, path: str) -> httpx.Response:
    """Command something; on a starved machine Temporal may not have heard it yet, and then asking again is right."""
    async with httpx.AsyncClient(timeout=30) as http:
        for _ in range(10):
            answer = await http.post(service.url + path)
            if answer.status_code != 503:
                break
        return answer


def segments(service: Service, slug: str, folder: str) -> dict[str, int]:
    """Name the stored segments of a rendition, each with the inode that would change if it were made again."""
    found = (service.storage / "videos" / slug / folder).glob("seg_*.m4s")
    return {path.name: path.stat().st_ino for path in sorted(found)}


async def begun(service: Service, slug: str, folder: str = "r1/360p", count: int = 1) -> None:
    async def is_begun() -> bool:
        return len(segments(service, slug, folder)) >= count

    await eventually(is_begun, within=120, every=0.05)


async def job_ended(service: Service, job_id: int) -> dict[str, Any]:
    """Wait for a job that is not the video's first: its video may be ready all the while."""
    found: dict[str, Any] = {}

    async def is_ended() -> bool:
        found.update(await service.get(f"/api/jobs/{job_id}"))
        return found["state"] in ("completed", "failed", "cancelled")

    await eventually(is_ended, within=120, every=0.2)
    return found


async def frames_of(service: Service, job_id: int, generation: int = 0) -> int:
    """Count the pictures that a transcode step has seen its encoder make."""
    [row] = await service.query(
        """SELECT (progress->>'frames')::int AS frames FROM job_steps
           WHERE job_id = $1 AND step = 'transcode' AND generation = $2""",
        job_id,
        generation,
    )
    return int(row["frames"])


def encoder_pids(service: Service) -> list[int]:
    """Name the encoders at work; what makes thumbnails and storyboards is none."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if b"libx264" in words and str(service.home).encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
    return found


@contextmanager
def refusing(service: Service, word: str) -> Iterator[None]:
    """Let the encoder refuse every command with this word in it."""
    broken = service.home.parent / "broken"
    broken.write_text(word)
    try:
        yield
    finally:
        broken.unlink()


async def test_a_cancel_stops_the_encoder_within_two_seconds(slow_service: Service, paced_clip: Path) -> None:
    service = slow_service
    created = await service.upload(paced_clip, title="cancel me")
    await begun(service, created["slug"])
    said = await post(service, f"/api/videos/{created['video_id']}/cancel")
    assert said.json()["cancel_requested_at"] is not None
    video = await service.ended(created["video_id"])
    assert (video["status"], video["error_code"], video["stream_url"]) == ("failed", "CANCELLED", None)
    assert encoder_pids(service) == []
    # Told by the rows: an encoder's step ends when its process is dead. Nothing began later, or runs on, or came next.
    [late] = await service.query(
        """SELECT max(s.finished_at) - min(j.cancel_requested_at) AS stopped,
                  count(*) FILTER (WHERE s.finished_at IS NULL OR s.step = 'verify') AS going_on
           FROM transcoding_jobs j JOIN job_steps s ON s.job_id = j.id AND s.step IN ('transcode', 'audio', 'verify')
           WHERE j.id = $1""",
        created["job_id"],
    )
    assert late["stopped"].total_seconds() < 2
    assert late["going_on"] == 0
    assert "is cancelled" in service.vlog("cancel", str(created["video_id"])).stdout  # of an ended one: unchanged
    assert not (service.storage / "videos" / created["slug"] / "r1").exists()


async def test_a_retry_of_a_failed_job_finds_every_whole_segment(slow_service: Service, paced_clip: Path) -> None:
    service = slow_service
    created = await service.upload(paced_clip, title="try again")
    await begun(service, created["slug"])
    with refusing(service, "/360p/"):
        for pid in encoder_pids(service):
            os.kill(pid, signal.SIGKILL)
        video = await service.ended(created["video_id"], within=120)
    assert (video["status"], video["error_code"]) == ("failed", "ENCODER_REJECTED")
    before = segments(service, created["slug"], "r1/360p")
    assert 1 <= len(before) < SECONDS // 2

    again = json.loads(service.vlog("retry", str(created["video_id"]), "--json").stdout)
    assert (await service.ended(created["video_id"], within=120))["status"] == "ready"
    job = await service.get(f"/api/jobs/{again['job_id']}")
    assert (job["kind"], job["continues_job_id"], job["output"]) == ("retry", created["job_id"], "r1")
    assert before.items() <= segments(service, created["slug"], "r1/360p").items()
    assert await frames_of(service, again["job_id"]) <= SECONDS * RATE - len(before) * SEGMENT


async def test_a_pause_frees_the_slot_and_nothing_is_encoded_twice(slow_service: Service, paced_clip: Path) -> None:
    service = slow_service
    created = await service.upload(paced_clip, title="pause me")
    await begun(service, created["slug"])
    assert (await post(service, f"/api/jobs/{created['job_id']}/pause")).json()["state"] == "paused"

    async def is_still() -> bool:
        held = "SELECT 1 FROM job_steps WHERE job_id = $1 AND finished_at IS NULL"
        return not await service.query(held, created["job_id"])

    await eventually(is_still, within=60)
    assert encoder_pids(service) == []
    [row] = await service.query("SELECT status FROM videos WHERE id = $1", created["video_id"])
    assert row["status"] == "pending"
    before = segments(service, created["slug"], "r1/360p")
    assert 1 <= len(before) < SECONDS // 2

    assert (await post(service, f"/api/jobs/{created['job_id']}/resume")).status_code == 200
    assert (await service.ended(created["video_id"], within=120))["status"] == "ready"
    after = segments(service, created["slug"], "r1/360p")
    assert before.items() <= after.items()
    steps = await service.get(f"/api/jobs/{created['job_id']}/steps")
    tries = [(s["generation"], s["attempt"], s["outcome"]) for s in steps if s["step"] == "transcode"]
    assert tries == [(0, 1, "partial"), (1, 1, "completed")]
    assert await frames_of(service, created["job_id"], generation=1) <= SECONDS * RATE - len(before) * SEGMENT
    names = [event["event"] for event in await service.get(f"/api/jobs/{created['job_id']}/events")]
    assert [name for name in names if name in ("job.paused", "job.resumed")] == ["job.paused", "job.resumed"]


async def test_a_retry_makes_just_what_is_missing_and_a_retranscode_flips_while_it_plays(
    slow_service: Service, short_clip: Path
) -> None:
    service = slow_service
    with refusing(service, "/480p/"):
        created = await service.upload(short_clip, title="make it whole")
        video = await service.ended(created["video_id"], within=120)
    number, slug = created["video_id"], created["slug"]
    assert (video["status"], [q["quality"] for q in video["qualities"]]) == ("ready", ["360p"])
    assert [(m["name"], m["code"]) for m in video["missing"]] == [("480p", "ENCODER_REJECTED")]

    small = segments(service, slug, "r1/360p")
    again = json.loads(service.vlog("retry", str(number), "--json").stdout)
    assert (await job_ended(service, again["job_id"]))["state"] == "completed"
    video = await service.get(f"/api/videos/{number}")
    assert ([q["quality"] for q in video["qualities"]], video["missing"]) == (["480p", "360p"], [])
    steps = await service.get(f"/api/jobs/{again['job_id']}/steps")
    assert {tuple(s["qualities"]) for s in steps if s["step"] == "transcode"} == {("480p",)}
    assert not [s for s in steps if s["step"] == "audio"]
    assert segments(service, slug, "r1/360p") == small

    # A retranscode that fails leaves every byte that is served as it was.
    master = service.storage / "videos" / slug / "master.m3u8"
    served = master.read_bytes()
    with refusing(service, "/480p/"):
        failed = (await post(service, f"/api/videos/{number}/retranscode")).json()
        assert (await job_ended(service, failed["job_id"]))["state"] == "failed"
    video = await service.get(f"/api/videos/{number}")
    assert (video["status"], video["error_code"], master.read_bytes()) == ("ready", None, served)
    progress = await service.get(f"/api/videos/{number}/progress")
    assert (progress["state"], progress["error_code"]) == ("failed", "ENCODER_REJECTED")

    # One that succeeds is served from the moment it is whole, and not before; one at a time.
    new = (await post(service, f"/api/videos/{number}/retranscode")).json()
    second = await post(service, f"/api/videos/{number}/retranscode")
    assert (second.status_code, second.json()["error"]) == (409, "JOB_UNFINISHED")
    job = await service.get(f"/api/jobs/{new['job_id']}")
    await begun(service, slug, f"{job['output']}/360p")
    statuses: set[str] = set()
    async with httpx.AsyncClient(base_url=service.url, timeout=30, follow_redirects=True) as http:
        while (await service.get(f"/api/jobs/{new['job_id']}"))["state"] not in ("completed", "failed", "cancelled"):
            [row] = await service.query("SELECT status FROM videos WHERE id = $1", number)
            statuses.add(row["status"])
            played = await http.get(f"/videos/{slug}/master.m3u8")
            assert played.status_code == 200
            assert played.content == served or job["output"].encode() in played.content
            await asyncio.sleep(0.1)
        assert statuses <= {"ready"}
        now = (await http.get(f"/videos/{slug}/master.m3u8")).text
        assert f"{job['output']}/480p/playlist.m3u8" in now and "r1/" not in now
        # Who plays the old stream goes on playing it for a grace.
        assert (await http.get(f"/videos/{slug}/r1/360p/seg_00000.m4s")).status_code == 200


async def test_a_deleted_video_stops_at_once_and_comes_back(slow_service: Service, paced_clip: Path) -> None:
    service = slow_service
    created = await service.upload(paced_clip, title="delete me")
    await begun(service, created["slug"])
    async with httpx.AsyncClient(base_url=service.url, timeout=30) as http:
        assert (await http.delete(f"/api/videos/{created['video_id']}")).status_code == 200
        assert (await http.get(f"/videos/{created['slug']}/master.m3u8")).status_code == 404
    assert (await job_ended(service, created["job_id"]))["state"] == "cancelled"
    assert encoder_pids(service) == []
    back = json.loads(service.vlog("restore", str(created["video_id"]), "--json").stdout)
    assert (back["status"], back["error_code"]) == ("failed", "CANCELLED")
