"""The key that claims of remote workers are sealed with, where no setting names one: all APIs of a database share it.

So a claim outlives the process that gave it, and any API knows it. Who reads this table can seal claims, but not send
them: that takes a worker's key, of which the database has a hash only.
"""

import secrets

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert

from mirror.sessions import Database
from mirror.tables import SealingKey


async def shared_sealing_key(database: Database) -> str:
    """Give the key; the first who asks makes it, and of several at once all get the same."""
    kept = select(SealingKey.key)
    async with database.read() as session:  # so that an API starts on a standby, too
        found = (await session.execute(kept)).scalar_one_or_none()
    if found is not None:
        return found
    async with database.write() as session:
        # Waits for somebody else's row to be committed; the next statement sees it.
        made = insert(SealingKey).values(id=1, key=secrets.token_urlsafe(32))
        await session.execute(made.on_conflict_do_nothing())
        return (await session.execute(kept)).scalar_one()
