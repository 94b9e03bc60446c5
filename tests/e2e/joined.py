"""Judging a video that several workers have made: joined without a seam, and how much was made twice."""

import contextlib
import re
from dataclasses import dataclass
from pathlib import Path

from media.boxes import read_init, read_segment
from media.streams import verify_stream
from media.tools import Toolbox
from tests.e2e.service import Service
from tests.support.counting import CountingFfmpeg

RATE = 30
SEGMENT_FRAMES = 2 * RATE  # VLOG_SEGMENT_SECONDS=2


@dataclass(frozen=True)
class Redone:
    """What one step encoded again of one quality, and how often it was begun anew."""

    quality: str
    first_segment: int
    frames: int
    lost: int  # attempts that were under way when their worker died


def encoding(job_id: int, workers: list[int]) -> dict[int, set[int]]:
    """Tell of which spans, by their first segments, each worker process has an encoder running."""
    found: dict[int, set[int]] = {worker: set() for worker in workers}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                step = re.search(rf"/job{job_id}-transcode_(\d+)\+".encode(), (entry / "cmdline").read_bytes())
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                if step and parent in found:
                    found[parent].add(int(step[1]))
    return found


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


async def redone(service: Service, counter: CountingFfmpeg, job_id: int, frames: int) -> list[Redone]:
    """Count what was encoded more than once, per quality and step, as the encoders told it."""
    encoded = counter.encoded(job_id, RATE)
    rows = await service.query(
        "SELECT qualities, first_segment, segments, count(*) FILTER (WHERE outcome = 'lost') AS lost,"
        " max(attempt) AS attempts FROM job_steps WHERE job_id = $1 AND step = 'transcode'"
        " GROUP BY qualities, first_segment, segments",
        job_id,
    )
    found = []
    for quality, times in encoded.items():
        # Every picture left an encoder at least once: a counter that missed some would flatter us.
        assert sorted(times) == list(range(frames)), quality
        mine = [row for row in rows if f'"{quality}"' in row["qualities"]]
        assert sum(row["segments"] for row in mine) * SEGMENT_FRAMES >= frames
        for row in mine:
            first = row["first_segment"] * SEGMENT_FRAMES
            again = sum(times[n] - 1 for n in range(first, min(frames, first + row["segments"] * SEGMENT_FRAMES)))
            # An attempt whose every word was lost with its worker has no row; the next one's number tells of it.
            lost = max(row["lost"], row["attempts"] - 1)
            found.append(Redone(quality, row["first_segment"], again, lost))
    return found


def check_redone(found: list[Redone]) -> None:
    """Check that a kill cost at most two segments of each quality and running step, and nothing else cost anything."""
    for step in found:
        assert step.frames <= 2 * SEGMENT_FRAMES * step.lost, step
