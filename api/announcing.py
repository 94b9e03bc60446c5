"""What an API does once, when it starts: says so, writes the alert hook down, looks which numbers storage knows."""

import asyncio

import structlog

from contracts.layout import UPLOADS, source_video
from mirror.marks import api_started
from mirror.numbers import pass_over_videos
from mirror.sessions import Database
from mirror.writes_hooks import keep_alert_hook
from runtime.settings import Settings
from storage.store import Store

log = structlog.get_logger(__name__)

AGAIN_S = 2.0


async def announce(settings: Settings, database: Database, store: Store) -> None:
    """Do all of it, once; a neighbour that is away is waited for.

    Workers which speak through this API get a while before they count as silent.
    """
    while True:
        try:
            async with database.write() as session:
                await api_started(session)
                await keep_alert_hook(
                    session,
                    settings.alert_webhook_url,
                    settings.alert_events,
                    rate_limit_s=settings.alert_rate_limit_seconds,
                    timeout_s=settings.alert_webhook_timeout,
                )
            await pass_over_stored(database, store)
            return
        except Exception as error:
            log.warning("api_start_not_recorded", error=type(error).__name__)
        await asyncio.sleep(AGAIN_S)


async def pass_over_stored(database: Database, store: Store) -> None:
    """Give no new video the number of a source that is stored already: this database may be younger than storage."""
    stored = (source_video(facts.key) for facts in await store.list(UPLOADS))
    highest = max((number for number in stored if number is not None), default=0)
    async with database.write() as session:
        if await pass_over_videos(session, highest):
            log.warning("numbers_passed_over", highest=highest)
