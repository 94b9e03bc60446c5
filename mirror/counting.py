"""Counters that never go backwards, although rows are purged: the event log, added up as it grows.

Lines that have settled are added to `event_counts`, once, in the order of their ids; the youngest are counted where
they are. A line whose transaction takes longer than `SETTLED` to commit is not counted: nothing counts twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import text

from mirror.marks import set_mark
from mirror.sessions import AnySession, WriteSession

MARK = "events.counted"  # its place: the id up to which all are in `event_counts`
SETTLED = "10 minutes"
AT_ONCE = 50_000
LOCK = 0x766C6F69

WORKERS_OWN = ("heartbeats", "heartbeat_failures", "acquire_conflicts")  # columns of `workers`
HIDDEN = "#"  # how the names of counters begin that are no events

_PLACE = f"SELECT coalesce((SELECT place FROM housekeeping_marks WHERE name = '{MARK}'), 0)"
_COUNTED = """
    SELECT event, left(coalesce(fields->>'code', ''), 50) AS code, count(*) AS count,
        coalesce(sum(CASE WHEN jsonb_typeof(fields->'seconds') = 'number'
            THEN (fields->>'seconds')::double precision END), 0) AS seconds
    FROM job_events
"""
_ADDED = """
    INSERT INTO event_counts (event, code, count, seconds) {counted}
    ON CONFLICT (event, code) DO UPDATE SET
        count = event_counts.count + excluded.count, seconds = event_counts.seconds + excluded.seconds
"""


@dataclass(frozen=True)
class EventCount:
    event: str
    code: str
    count: int
    seconds: float  # of those that took time


async def count_settled(s: WriteSession) -> None:
    """Add up what has settled since the last time; somebody else may be at it."""
    if not (await s.execute(text("SELECT pg_try_advisory_xact_lock(:lock)"), {"lock": LOCK})).scalar_one():
        return
    place = (await s.execute(text(_PLACE))).scalar_one()
    young = f"SELECT min(id) - 1 FROM job_events WHERE id > :place AND ts > now() - interval '{SETTLED}'"
    every = "SELECT max(id) FROM job_events WHERE id > :place"
    upto = (await s.execute(text(f"SELECT coalesce(({young}), ({every}))"), {"place": place})).scalar_one()
    upto = min(upto or 0, place + AT_ONCE)
    if upto > place:
        where = "WHERE id > :place AND id <= :upto GROUP BY 1, 2"
        await s.execute(text(_ADDED.format(counted=f"{_COUNTED} {where}")), {"place": place, "upto": upto})
        await set_mark(s, MARK, upto)


async def count_before_purge(s: WriteSession, video_id: int) -> None:
    """Add up the lines of a video that is about to be forgotten, those that are not yet."""
    await s.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
    of_video = "job_id IN (SELECT id FROM transcoding_jobs WHERE video_id = :video_id)"
    where = f"WHERE id > ({_PLACE}) AND {of_video} GROUP BY 1, 2"
    await s.execute(text(_ADDED.format(counted=f"{_COUNTED} {where}")), {"video_id": video_id})


async def count_before_forgetting(s: WriteSession, worker_ids: Sequence[str]) -> None:
    """Keep what workers had counted themselves, when their rows, which are locked, are about to be deleted."""
    for name in WORKERS_OWN:
        counted = f"SELECT '{HIDDEN}{name}', '', coalesce(sum({name}), 0), 0 FROM workers WHERE worker_id = ANY(:ids)"
        await s.execute(text(_ADDED.format(counted=counted)), {"ids": list(worker_ids)})


async def workers_counts(s: AnySession) -> dict[str, int]:
    """Give what workers count themselves, over all that there ever were."""
    counts = {}
    for name in WORKERS_OWN:
        kept = f"SELECT coalesce(sum(count), 0) FROM event_counts WHERE event = '{HIDDEN}{name}'"
        query = f"SELECT (coalesce(sum({name}), 0) + ({kept}))::bigint FROM workers"
        counts[name] = int((await s.execute(text(query))).scalar_one())
    return counts


async def event_counts(s: AnySession) -> list[EventCount]:
    """Give how often each event happened, ever. One statement, so that nothing is counted on its way."""
    young = f"{_COUNTED} WHERE id > ({_PLACE}) GROUP BY 1, 2"
    query = f"""
        SELECT event, code, sum(count)::bigint AS count, sum(seconds) AS seconds
        FROM (SELECT event, code, count, seconds FROM event_counts UNION ALL {young}) AS both_of_them
        WHERE NOT starts_with(event, '{HIDDEN}')
        GROUP BY 1, 2 ORDER BY 1, 2
    """
    return [EventCount(*row) for row in await s.execute(text(query))]
