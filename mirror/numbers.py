"""Numbers that storage or Temporal know and this database does not: it was restored, or begun anew beside them.

Given out again, such a number would put a new source in the place of an old one, and a new job behind a workflow that
has long ended. So they are passed over, and no source up to there is ever taken for one that an intake left behind.
"""

from sqlalchemy import text

from mirror.marks import place_of, set_mark
from mirror.sessions import AnySession, WriteSession

LEFT_ALONE = "sources.left_alone"

_GIVEN = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM"


async def pass_over_videos(s: WriteSession, highest: int) -> bool:
    """Give out no video's number up to this one; False when this database had given them all itself."""
    if highest <= await highest_given(s):
        return False
    await _move(s, "videos_id_seq", highest)
    await leave_alone(s, highest)
    return True


async def pass_over_jobs(s: WriteSession, highest: int) -> None:
    if highest > await _given(s, "transcoding_jobs_id_seq"):
        await _move(s, "transcoding_jobs_id_seq", highest)


async def leave_alone(s: WriteSession, highest: int) -> None:
    """Take no source up to this number for one without a video: only their rows may be lost."""
    await set_mark(s, LEFT_ALONE, max(highest, await place_of(s, LEFT_ALONE)))


async def given_here(s: AnySession) -> range:
    """Name the numbers of videos that surely were given out by this very database."""
    return range(await place_of(s, LEFT_ALONE) + 1, await highest_given(s) + 1)


async def highest_given(s: AnySession) -> int:
    return await _given(s, "videos_id_seq")


async def _given(s: AnySession, sequence: str) -> int:
    given: int = (await s.execute(text(f"{_GIVEN} {sequence}"))).scalar_one()
    return given


async def _move(s: WriteSession, sequence: str, highest: int) -> None:
    # With nextval: whoever takes a number this very moment is not overtaken backwards.
    await s.execute(
        text(f"SELECT setval('{sequence}', greatest(nextval('{sequence}'), CAST(:highest AS bigint)))"),
        {"highest": highest},
    )
