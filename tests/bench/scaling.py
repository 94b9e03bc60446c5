"""One long video on ever more workers, and what videos of different length cost Temporal and Postgres.

Eight workers do not fit on one machine, so their encoders are paced: ffmpeg reads its source at a fixed speed and
sleeps in between. What is measured is all that is around it: cutting, queueing, handing out, recording, joining.
"""

import asyncio
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncpg
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client

from contracts.ids import JobId, VideoId, workflow_id
from contracts.plan import Rung
from media.tools import Ffmpeg
from tests.bench.bench import Bench
from tests.bench.figures import Verdict
from tests.bench.machine import moment
from tests.bench.ours import Busy, Ours
from tests.bench.page import table, verdict_lines
from tests.bench.processes import measured
from tests.support.wrapping import wrapped

SPAN_S = 18  # three segments
LONG_S = 32 * SPAN_S  # as many spans as an hour has by default
SPEED = 2  # seconds of video that a step encodes in a second; told more, this ffmpeg was no faster
WORKERS = (1, 4, 8)
SPEED_UP, BUSY = 6.5, 0.70
LADDER = (Rung(name="90p", short_side=90, video_kbps=100, audio_kbps=32),)
LENGTHS_S = (SPAN_S, 5 * SPAN_S, LONG_S)
IDLE_S = 20
PARTS = ("ffmpeg", "workers", "API", "Temporal", "Postgres")
TASKS = (EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED, EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED)
FLUSHED_S = 11.0  # Postgres' own counters come up to ten seconds late

# Encodes are paced, and nothing else: a probe or a picture takes as long as it takes.
_PACED = f"""
case " $* " in *" libx264 "*) ;; *) exec "$real" "$@" ;; esac
left=$#
while [ $left -gt 0 ]; do
    word=$1; shift; left=$((left - 1))
    [ "$word" != -i ] || set -- "$@" -readrate {SPEED}
    set -- "$@" "$word"
done
exec "$real" "$@"
"""


def scaling(bench: Bench) -> str:
    """Give one video to 8, 4 and 1 workers of one slot each; void, and over, when the machine itself was the limit."""
    when = moment()
    seconds, counts = (4 * SPAN_S, (1, 2)) if bench.quick else (LONG_S, WORKERS)
    source = _small(bench.tool, bench.folder, seconds)
    runs: dict[int, Busy] = {}
    for workers in sorted(counts, reverse=True):  # the busiest first: where that is void the others need not be run
        with _paced(bench, workers) as ours:
            run = runs[workers] = ours.time_to_ready(source, within_s=120 + 3 * seconds / SPEED)
        spent = ", ".join(f"{name} {cpu_s:.1f}" for name, cpu_s in run.ours_s.items())
        bench.say(
            f"{workers} workers: {run.wall_s:.1f} s, machine busy {run.share:.0%} ({run.foreign:.0%} with others);"
            f" CPU s: {spent}"
        )
        if run.share > BUSY and not bench.quick:
            break
    least = SPEED_UP * counts[-1] / WORKERS[-1]
    verdict = speed_up_verdict(runs, counts, least)
    bench.say(str(verdict))
    intro = (
        f"{seconds / 60:g} minutes of 160×90, one rung, ultrafast, spans of {SPAN_S} s; every worker has one slot, in"
        f" which ffmpeg reads with `-readrate {SPEED:g}`. From accepted to ready, probe, check and publishing included."
        f" {when}; one run each. Busy is all of the machine, whoever it was; the last columns are cores."
    )
    head = ["workers", "wall s", "speed-up", "of the ideal", "machine busy", "with others", *PARTS]
    rows = [_row(workers, runs) for workers in sorted(runs)]
    return "\n\n".join(["## One long video on more workers", intro, table(head, rows), verdict_lines([verdict])])


def _row(workers: int, runs: Mapping[int, Busy]) -> list[str]:
    run, one = runs[workers], runs.get(1)
    speed_up = [f"{one.wall_s / run.wall_s:.2f}", f"{one.wall_s / run.wall_s / workers:.0%}"] if one else ["–", "–"]
    cores = (f"{run.ours_s[name] / run.wall_s:.2f}" for name in PARTS)
    return [str(workers), f"{run.wall_s:.1f}", *speed_up, f"{run.share:.0%}", f"{run.foreign:.0%}", *cores]


def speed_up_verdict(runs: Mapping[int, Busy], counts: Sequence[int], least: float) -> Verdict:
    """Judge the most workers by one, unless a run had to wait for the machine."""
    one, most = runs.get(counts[0]), runs.get(counts[-1])
    speed_up = one.wall_s / most.wall_s if one and most else 0.0
    said = f"{speed_up:.2f}" if speed_up else "nothing"
    busiest = max(runs.values(), key=lambda run: run.share)
    if busiest.share > BUSY:
        said += (
            f", void: the machine was {busiest.share:.0%} busy, {busiest.foreign:.0%} of it with others,"
            f" and above {BUSY:.0%} it is the machine that is measured"
        )
    met = busiest.share <= BUSY and speed_up >= least
    return Verdict(f"{counts[-1]} workers are {least:g} times as fast as one", said, met)


@dataclass(frozen=True)
class Counted:
    """What Postgres has written since its start."""

    rows: int
    wal_bytes: int

    def since(self, before: "Counted") -> "Counted":
        return Counted(self.rows - before.rows, self.wal_bytes - before.wal_bytes)


@dataclass(frozen=True)
class Told:
    """What a job and its lists have told Temporal."""

    workflows: int
    events: int
    history_bytes: int
    transitions: int
    tasks: int  # handed out over queues: of workflows and of activities


def arithmetic(bench: Bench) -> str:
    """Count, for videos of some lengths, events, transitions and rows: what docs/scaling.md multiplies."""
    when, rows, workers = moment(), [], 4
    lengths = (10, 2 * SPAN_S) if bench.quick else LENGTHS_S
    per_step_s = 0.0
    with _paced(bench, workers) as ours:
        before, began = _counted_late(ours), time.monotonic()
        time.sleep(0 if bench.quick else IDLE_S)
        idle = _counted_late(ours).since(before)
        idle_s = time.monotonic() - began
        for seconds in lengths:
            source = _small(bench.tool, bench.folder, seconds)
            before = _counted_late(ours)
            video = ours.ready(source, within_s=120 + 3 * seconds / SPEED)
            wrote = _counted_late(ours).since(before)
            steps, encodes, encoding_s, connections = asyncio.run(_steps(ours, video["job_id"]))
            told = asyncio.run(_told(ours, video["id"], video["job_id"]))
            per_step_s = wrote.rows / max(encoding_s, 0.1)
            rows.append(
                [f"{seconds}", f"{encodes} of {steps}", f"{told.workflows}", f"{told.events}",
                 f"{told.history_bytes / 1000:.0f}", f"{told.tasks}", f"{told.transitions}", f"{wrote.rows}",
                 f"{wrote.wal_bytes / 1000:.0f}", f"{encoding_s:.0f}", f"{per_step_s:.1f}"]
            )  # fmt: skip
            bench.say(f"{seconds} s: {told.events} events, {wrote.rows} rows in {encoding_s:.0f} step-seconds")
    head = ["seconds", "encodes of steps", "workflows", "events", "history KB", "tasks", "transitions", "rows written",
            "WAL KB", "step-seconds", "rows per step-second"]  # fmt: skip
    intro = (
        f"160×90, one rung, no sound, spans of {SPAN_S} s, {workers} workers of one slot, ffmpeg paced to {SPEED} times"
        f" real time. {when}."
        f" Idle, the service writes {idle.rows / idle_s:.2f} rows and {idle.wal_bytes / idle_s / 1000:.1f} KB of WAL"
        " a second;"
        f" API and workers hold {connections} connections to Postgres."
    )
    return "\n\n".join(["## What a video costs Temporal and Postgres", intro, table(head, rows)])


@contextmanager
def _paced(bench: Bench, workers: int) -> Iterator[Ours]:
    folder = bench.folder / f"paced-{workers}"
    tool = wrapped(bench.tool, folder / "tool", _PACED)
    (folder / "tool" / "ffprobe").symlink_to(bench.tool.ffprobe)
    settings = {"VLOG_FFMPEG": str(tool.ffmpeg), "VLOG_CPU_SLOTS": "1", "VLOG_SPAN_SECONDS": str(SPAN_S)}
    try:
        with Ours(folder / "service", "ultrafast", LADDER, settings=settings, workers=workers) as ours:
            yield ours
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _small(tool: Ffmpeg, folder: Path, seconds: int) -> Path:
    """Make a source that costs nothing to decode: no sound, ten small pictures a second."""
    path = folder / f"small-{seconds}s.mp4"
    if not path.exists():
        pictures = f"testsrc2=s=160x90:r=10:d={seconds}"
        words = [
            "-f",
            "lavfi",
            "-i",
            pictures,
            "-pix_fmt",
            "yuv420p",
            "-c:v",
            "libx264",
            "-preset",
            "ultrafast",
            "-g",
            "20",
        ]
        measured([str(tool.ffmpeg), "-y", "-v", "error", "-nostdin", "-nostats", *words, str(path)], timeout_s=400)
    return path


async def _ask(ours: Ours, sql: str, *arguments: object) -> asyncpg.Record:
    [row] = await ours.service.query(sql, *arguments)
    return row


def _counted_late(ours: Ours) -> Counted:
    time.sleep(FLUSHED_S)
    return asyncio.run(_counted(ours))


async def _counted(ours: Ours) -> Counted:
    row = await _ask(
        ours,
        "SELECT (SELECT sum(n_tup_ins + n_tup_upd + n_tup_del) FROM pg_stat_user_tables)::bigint AS rows,"
        " (pg_current_wal_lsn() - '0/0')::bigint AS wal",
    )
    return Counted(row["rows"], row["wal"])


async def _steps(ours: Ours, job_id: int) -> tuple[int, int, float, int]:
    row = await _ask(
        ours,
        "SELECT count(*) AS steps, count(*) FILTER (WHERE step = 'transcode') AS encodes,"
        " sum(extract(epoch FROM finished_at - started_at)) FILTER (WHERE step = 'transcode')::float AS seconds,"
        " (SELECT count(*) FROM pg_stat_activity"
        "  WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend') AS held"
        " FROM job_steps WHERE job_id = $1",
        job_id,
    )
    return row["steps"], row["encodes"], row["seconds"], row["held"]


async def _told(ours: Ours, video_id: int, job_id: int) -> Told:
    client = await Client.connect(ours.service.run["temporal_address"])
    job = client.get_workflow_handle(workflow_id(VideoId(video_id), JobId(job_id)))
    histories = [(await job.fetch_history()).events]
    lists = {
        event.child_workflow_execution_started_event_attributes.workflow_execution.workflow_id
        for event in histories[0]
        if event.HasField("child_workflow_execution_started_event_attributes")
    }
    histories += [(await client.get_workflow_handle(each).fetch_history()).events for each in lists]
    found = [(await client.get_workflow_handle(each).describe()).raw_info for each in (job.id, *lists)]
    return Told(
        workflows=len(found),
        events=sum(info.history_length for info in found),
        history_bytes=sum(info.history_size_bytes for info in found),
        transitions=sum(info.state_transition_count for info in found),
        tasks=sum(event.event_type in TASKS for events in histories for event in events),
    )
