"""Moments and places that outlive a process: set by whoever gets there, read by housekeeping."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert

from mirror.sessions import AnySession, WriteSession
from mirror.tables import Mark

API_STARTED = "api.started"


async def api_started(s: WriteSession) -> None:
    """Note that an API has just come up: workers may have been unable to reach one before."""
    await set_mark(s, API_STARTED)


async def set_mark(s: WriteSession, name: str, place: int = 0) -> None:
    put = insert(Mark).values(name=name, at=func.clock_timestamp(), place=place)
    await s.execute(put.on_conflict_do_update(index_elements=["name"], set_={"at": put.excluded.at, "place": place}))


async def marked_at(s: AnySession, name: str) -> datetime | None:
    return (await s.execute(select(Mark.at).where(Mark.name == name))).scalar_one_or_none()


async def place_of(s: AnySession, name: str) -> int:
    """Tell how far a round has come; 0 when it is at its beginning."""
    return (await s.execute(select(Mark.place).where(Mark.name == name))).scalar_one_or_none() or 0


async def move_on(s: WriteSession, name: str, seen: Sequence[int], limit: int) -> None:
    """Remember the last of a batch, or begin again when the batch was not full."""
    await set_mark(s, name, max(seen) if len(seen) >= limit else 0)
