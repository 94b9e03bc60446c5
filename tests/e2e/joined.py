"""Judging a video that several workers have made: joined without a seam, and how much was made twice."""

from media.boxes import read_init, read_segment
from media.streams import verify_stream
from media.tools import Toolbox
from tests.e2e.service import Service

RATE = 30
SEGMENT_FRAMES = 2 * RATE  # VLOG_SEGMENT_SECONDS=2


async def spans(service: Service, job_id: int) -> list[tuple[int, int, int, str]]:
    rows = await service.query(
        "SELECT first_segment, segments, attempt, worker_id FROM job_steps"
        " WHERE job_id = $1 AND step = 'transcode' ORDER BY first_segment, attempt",
        job_id,
    )
    return [(row["first_segment"], row["segments"], row["attempt"], row["worker_id"]) for row in rows]


async def check_joined(service: Service, tools: Toolbox, slug: str, frames: int) -> None:
    """Check every rung: all frames, one init, times that follow each other over every seam."""
    folder = service.storage / "videos" / slug
    report = await verify_stream(tools, folder / "master.m3u8")
    assert {rung.frames for rung in report.rungs} == {frames}
    assert len({rung.boundaries_s for rung in report.rungs}) == 1
    for rung in (rung.name for rung in report.rungs):
        init = read_init((folder / "r1" / rung / "init.mp4").read_bytes())
        at = 0
        for path in sorted((folder / "r1" / rung).glob("seg_*.m4s")):
            facts = read_segment(path, init)
            assert facts.tfdt == at
            at += facts.duration
        assert at * RATE == frames * init.timescale


async def encoded_frames(service: Service, job_id: int) -> tuple[int, int]:
    """Count the frames all attempts together encoded, by ffmpeg's own count, and the attempts that were lost."""
    rows = await service.query(
        "SELECT outcome, (progress->>'frames')::int AS frames FROM job_steps WHERE job_id = $1 AND step = 'transcode'",
        job_id,
    )
    return sum(row["frames"] or 0 for row in rows), sum(row["outcome"] == "lost" for row in rows)
