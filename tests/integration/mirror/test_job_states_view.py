"""The state of a job in SQL and in Python are the same function."""

import asyncio
from dataclasses import astuple, dataclass
from datetime import datetime, timedelta
from typing import Any

import asyncpg
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mirror.states import job_state

# Seconds from now: past, future and exactly now, where claimed becomes expired.
moments = st.sampled_from([0.0, -0.000001, 0.000001]) | st.floats(-3600, 3600, allow_nan=False)
# Mostly absent: each of these hides every state below it.
rarely = st.sampled_from([True, False, False, False]).flatmap(lambda there: moments if there else st.none())


@dataclass(frozen=True)
class Drawn:
    cancelled: float | None
    completed: float | None
    paused: float | None
    expires: float | None
    last_error: str | None
    attempt_number: int
    max_attempts: int


@dataclass(frozen=True)
class Row:
    cancelled_at: datetime | None
    completed_at: datetime | None
    paused_at: datetime | None
    claim_expires_at: datetime | None
    last_error: str | None
    attempt_number: int
    max_attempts: int


drawn = st.builds(
    Drawn,
    cancelled=rarely,
    completed=rarely,
    paused=rarely,
    expires=st.none() | moments,
    last_error=st.none() | st.sampled_from(["", "it crashed"]),
    attempt_number=st.integers(1, 5),
    max_attempts=st.integers(1, 5),
)

INSERT = """
    INSERT INTO transcoding_jobs (video_id, cancelled_at, completed_at, paused_at, claimed_at, claim_expires_at,
                                  last_error, attempt_number, max_attempts)
    VALUES ($1, $2, $3, $4, $5, $5, $6, $7, $8)
"""
VIDEOS = "INSERT INTO videos (title, slug) SELECT 't', 'v' || n FROM generate_series(1, $1::int) n RETURNING id"


async def _compare(url: str, rows: list[Drawn]) -> None:
    connection: Any = await asyncpg.connect(url.replace("+asyncpg", ""), timeout=10)
    try:
        transaction = connection.transaction()
        await transaction.start()
        now = await connection.fetchval("SELECT now()")

        def at(seconds: float | None) -> datetime | None:
            return None if seconds is None else now + timedelta(seconds=seconds)

        made = [
            Row(
                at(each.cancelled),
                at(each.completed),
                at(each.paused),
                at(each.expires),
                each.last_error,
                each.attempt_number,
                each.max_attempts,
            )
            for each in rows
        ]
        videos = await connection.fetch(VIDEOS, len(rows))
        expected = {video["id"]: job_state(row, now).value for video, row in zip(videos, made, strict=True)}
        await connection.executemany(INSERT, [(v["id"], *astuple(row)) for v, row in zip(videos, made, strict=True)])
        view = await connection.fetch("SELECT job_id, video_id, state FROM job_states")
        found = {row["video_id"]: row["state"] for row in view}
        await transaction.rollback()
        assert found == expected
    finally:
        await connection.close()


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(drawn, min_size=10, max_size=30))
def test_the_view_and_the_function_agree_on_every_row(database_url: str, rows: list[Drawn]) -> None:
    asyncio.run(_compare(database_url, rows))
