"""All that the API answers. Put together once: it takes FastAPI an eighth of a second, and tests make many apps."""

from fastapi import APIRouter

from api import (
    about,
    assets,
    audit,
    commands,
    events,
    health,
    jobs,
    metrics,
    pages,
    playback,
    queues,
    session,
    sharing,
    tus,
    uploading,
    videos,
    watching,
    webhooks,
    worker_api,
    worker_files,
    worker_steps,
    workers,
)

ROUTES = APIRouter()
for _part in (
    # First what is asked all the time: FastAPI tries one after the other.
    playback.router,
    worker_steps.router,
    worker_files.router,
    pages.router,
    watching.router,
    assets.router,
    about.router,
    session.router,
    uploading.router,
    tus.router,
    videos.router,
    sharing.router,
    jobs.router,
    audit.router,
    events.router,
    workers.router,
    queues.router,
    worker_api.router,
    webhooks.router,
    health.router,
    metrics.router,
    commands.videos,
    commands.jobs,
):
    ROUTES.include_router(_part)
