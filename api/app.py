"""The app: routes, error shapes, and the background tasks, from parts that somebody else opened."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from temporalio.client import Client

from api import assets, growing, metrics, playback, queues, telling
from api.announcing import announce
from api.bodies import AnswerAfterBody, BoundedBodies
from api.claims import Seal
from api.cors import PlaybackCors
from api.delivering import Deliverer
from api.errors import install
from api.gateway import Gateway
from api.guessing import Guesses
from api.known_keys import KnownKeys
from api.live import Live
from api.measuring import Measure, Measured
from api.open_calls import OpenCalls
from api.openapi import DESCRIPTION, TAGS
from api.parts import Parts
from api.routes import ROUTES
from api.security import KnownHost, admin_secret
from api.signed_in import SignedOut
from api.signing import Keys
from api.signs import SignsOfLife
from api.starting import Starter
from api.tus_protocol import TusProtocol
from mirror.recorder import StepRecorder
from mirror.sessions import Database
from runtime.schedules import keep_scheduled
from runtime.settings import Settings
from storage.store import Store

RECORD_S = 2.0  # what steps told last is written while the process stops, if Postgres takes it


def create_app(
    settings: Settings,
    database: Database,
    store: Store,
    temporal: Client,
    *,
    sealing_key: str,
    temporal_ui_url: str | None = None,
) -> FastAPI:
    """Put the API together. Whoever opened the parts closes them."""
    starter = Starter(
        database,
        temporal,
        heartbeat_timeout_s=settings.heartbeat_timeout_s,
        critical=settings.critical_qualities,
    )
    teller = telling.Teller(database, temporal)
    deliverer = Deliverer(database, temporal)
    signed_out = SignedOut()
    live = Live(database, signed_out)
    gateway = Gateway(temporal)
    signs = SignsOfLife(database, settings.worker_heartbeat_interval)
    claim_minutes = settings.worker_claim_duration_minutes
    recorder = StepRecorder(database, None, claim_s=claim_minutes * 60 if claim_minutes else None)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        tasks = [
            asyncio.create_task(starter.run(), name="starter"),
            asyncio.create_task(announce(settings, database, store), name="announcement"),
            asyncio.create_task(deliverer.run(), name="deliverer"),
            asyncio.create_task(recorder.run(), name="recorder"),
            asyncio.create_task(signs.run(), name="signs of life"),
            asyncio.create_task(keep_scheduled(temporal, settings.stale_job_check_interval), name="schedules"),
        ]
        try:
            async with telling.running(teller), live.running():
                yield
        finally:
            await gateway.closed()
            await recorder.close(RECORD_S)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    app = FastAPI(
        title="VLog",
        version="0.1",
        description=DESCRIPTION,
        openapi_tags=TAGS,
        lifespan=lifespan,
        routes=ROUTES.routes,
        docs_url=None,  # /docs is ours: see api/reference.py
        redoc_url=None,
    )
    app.state.parts = Parts(settings, database, store, temporal, starter, teller, temporal_ui_url)
    app.state.visibility = playback.Visibility()
    app.state.keys = Keys(admin_secret(settings))
    app.state.signed_out = signed_out
    app.state.guesses = Guesses()
    app.state.growing = growing.Growing()
    app.state.live = live
    app.state.gateway = gateway
    app.state.signs = signs
    app.state.open_calls = OpenCalls()
    app.state.known_keys = KnownKeys()
    app.state.recorder = recorder
    app.state.seal = Seal(sealing_key)
    app.state.measured = Measured()
    app.state.backlogs = queues.Backlogs()
    app.state.watched = metrics.Watched()
    app.state.shelves = assets.Shelves()
    install(app)

    # The last one added is the outermost.
    app.add_middleware(BoundedBodies)
    app.add_middleware(KnownHost, settings=settings)
    app.add_middleware(AnswerAfterBody)
    app.add_middleware(PlaybackCors)
    app.add_middleware(
        TusProtocol, max_bytes=settings.max_upload_size, open_to_others=settings.admin_secret is not None
    )
    app.add_middleware(Measure, measured=app.state.measured)
    return app
