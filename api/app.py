"""The app: routes, error shapes, and the two background tasks, from parts that somebody else opened."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI
from temporalio.client import Client

from api import commands, growing, health, jobs, pages, playback, telling, uploading, videos
from api.bodies import AnswerAfterBody
from api.cors import PlaybackCors
from api.errors import install
from api.openapi import DESCRIPTION, TAGS
from api.parts import Parts
from api.security import KnownHost
from api.starting import Starter
from mirror.sessions import Database
from runtime.settings import Settings
from storage.store import Store


def create_app(
    settings: Settings, database: Database, store: Store, temporal: Client, *, temporal_ui_url: str | None = None
) -> FastAPI:
    """Put the API together. Whoever opened the parts closes them."""
    starter = Starter(
        database,
        temporal,
        heartbeat_timeout_s=heartbeat_timeout_s(settings),
        critical=settings.critical_qualities,
    )
    teller = telling.Teller(database, temporal)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        starting = asyncio.create_task(starter.run(), name="starter")
        try:
            async with telling.running(teller):
                yield
        finally:
            starting.cancel()
            with suppress(asyncio.CancelledError):
                await starting

    app = FastAPI(
        title="VLog",
        version="0.1",
        description=DESCRIPTION,
        openapi_tags=TAGS,
        lifespan=lifespan,
        docs_url=None,  # /docs is ours: see api/reference.py
        redoc_url=None,
    )
    app.state.parts = Parts(settings, database, store, temporal, starter, teller, temporal_ui_url)
    app.state.visibility = playback.Visibility()
    app.state.growing = growing.Growing()
    install(app)
    for part in (pages, uploading, videos, jobs, health, playback):
        app.include_router(part.router)
    app.include_router(commands.videos)
    app.include_router(commands.jobs)

    # The last one added is the outermost.
    app.add_middleware(KnownHost, settings=settings)
    app.add_middleware(AnswerAfterBody)
    app.add_middleware(PlaybackCors)
    return app


def heartbeat_timeout_s(settings: Settings) -> float:
    """Say how long a silent worker keeps a step: the documented claim duration where it is set."""
    if settings.worker_claim_duration_minutes is not None:
        return settings.worker_claim_duration_minutes * 60
    return settings.step_heartbeat_timeout_seconds
