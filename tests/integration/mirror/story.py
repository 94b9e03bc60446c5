"""Pieces of a job's life, short enough to tell one in a test."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import text

from contracts.ids import ObjectKey
from contracts.media import FrameRate, SourceFacts
from contracts.plan import Grid, PlannedAudio, PlannedRendition, Span, TranscodePlan
from contracts.states import StepName, StepOutcome, WorkerStatus
from contracts.steps import QualityProgress, StepProgress
from mirror import writes
from mirror.recorder import StepClaim, WorkerIdentity
from mirror.sessions import Database
from mirror.writes import CreatedVideo, NewVideo, WorkerRegistration
from mirror.writes_steps import StepEnd, StepNews, WorkerLoad, record_step

WORKER = WorkerIdentity("worker-1", "studio")
OTHER = WorkerIdentity("worker-2", "attic")

GRID = Grid(frame_rate=FrameRate(num=25), frames=600, segment_frames=150)
PLAN = TranscodePlan(
    grid=GRID,
    renditions=(
        PlannedRendition(quality="720p", width=1280, height=720, video_kbps=2500),
        PlannedRendition(quality="360p", width=640, height=360, video_kbps=600),
    ),
    skipped=("1080p",),
    audio=(PlannedAudio(track=0, stream=1, kbps=96),),
    spans=(Span(first_segment=0, segments=4),),
    notes=("1080p is larger than the source.",),
)


async def upload(database: Database, title: str = "My holiday", **given: Any) -> CreatedVideo:
    async with database.write() as s:
        video_id = await writes.next_video_id(s)
        new = NewVideo(video_id=video_id, title=title, source_key=ObjectKey(f"uploads/{video_id}.mp4"), **given)
        return await writes.create_video(s, new)


async def planned(database: Database, **given: Any) -> CreatedVideo:
    video = await upload(database, **given)
    async with database.write() as s:
        await writes.record_plan(s, video.job_id, video.video_id, PLAN)
    return video


async def register(database: Database, worker: WorkerIdentity = WORKER) -> None:
    async with database.write() as s:
        await writes.register_worker(s, WorkerRegistration(worker.worker_id, worker.worker_name))


def claim(video: CreatedVideo, step: StepName, **given: Any) -> StepClaim:
    plain: dict[str, Any] = {"step_key": step.value, "generation": 0, "attempt": 1, "started_at": datetime.now(UTC)}
    if step is StepName.TRANSCODE:
        plain |= {"step_key": "transcode:0+4:720p,360p", "qualities": ("720p", "360p"), "queue": "vlog-cpu"}
        plain |= {"span": Span(first_segment=0, segments=4)}
    return StepClaim(job_id=video.job_id, video_id=video.video_id, step=step, **{**plain, **given})


def encoded(large: int, small: int) -> StepProgress:
    """Say how many of four segments each quality has."""
    counts = (("720p", large), ("360p", small))
    return StepProgress(
        percent=12.5 * (large + small),
        qualities=tuple(
            QualityProgress(quality=name, segments_total=4, segments_completed=done, percent=25 * done)
            for name, done in counts
        ),
    )


async def tell(
    database: Database,
    what: StepClaim,
    progress: StepProgress | None = None,
    *,
    end: StepOutcome | None = None,
    worker: WorkerIdentity = WORKER,
    learned: tuple[SourceFacts | TranscodePlan, ...] = (),
    **how: Any,
) -> bool:
    """Write one piece of news directly, as the recorder's flusher would."""
    news = StepNews(what, progress, end=StepEnd(end, **how) if end else None, learned=learned)
    load = WorkerLoad(WorkerStatus.IDLE if end else WorkerStatus.BUSY, None if end else what.job_id)
    async with database.write() as s:
        return await record_step(s, news, worker, load)


async def row(database: Database, query: str, **given: Any) -> dict[str, Any]:
    rows = await rows_of(database, query, **given)
    assert len(rows) == 1, f"{len(rows)} rows: {query}"
    return rows[0]


async def rows_of(database: Database, query: str, **given: Any) -> list[dict[str, Any]]:
    async with database.read() as s:
        return [dict(found) for found in (await s.execute(text(query), given)).mappings()]


async def job_row(database: Database, video: CreatedVideo) -> dict[str, Any]:
    """Read the row as a dashboard would: job, derived state and video's status."""
    query = """
        SELECT j.*, s.state, v.status AS video_status, v.error_code AS video_error_code, v.error_message, v.playable_at
        FROM transcoding_jobs j JOIN job_states s ON s.job_id = j.id JOIN videos v ON v.id = j.video_id
        WHERE j.id = :id
    """
    return await row(database, query, id=video.job_id)


@asynccontextmanager
async def refusing(database: Database, table: str) -> AsyncIterator[None]:
    """Let Postgres refuse whatever is written to a table meanwhile."""
    async with database.write() as s:
        await s.execute(
            text(
                "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql"
                " AS $$ BEGIN RAISE 'not this one'; END $$"
            )
        )
        await s.execute(
            text(f"CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION refuse()")
        )
    try:
        yield
    finally:
        async with database.write() as s:
            await s.execute(text(f"DROP TRIGGER refuse ON {table}"))


async def everything_in(database: Database, *tables: str) -> dict[str, list[str]]:
    """Take down every row of some tables, to see later whether anything has changed."""
    found = {name: await rows_of(database, f"SELECT t::text AS row FROM {name} t ORDER BY id") for name in tables}
    return {name: [row["row"] for row in rows] for name, rows in found.items()}


async def event_names(database: Database, video: CreatedVideo) -> list[str]:
    found = await rows_of(database, "SELECT event FROM job_events WHERE job_id = :id ORDER BY id", id=video.job_id)
    return [event["event"] for event in found]
