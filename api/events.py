"""GET /api/events/…: what happens, as it happens, for pages that stay open."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from api.errors import ApiError, video_not_found
from api.event_stream import EventStream
from api.live import Live
from api.openapi import errors
from api.parts import Here, Parts
from api.security import AdminOnly, came_by_cookie
from api.streams import Hub, Stream
from api.videos import ID_LIMIT, PAGE_LIMIT

_EXAMPLE = 'retry: 3000\n\nevent: worker_status\ndata: {"worker_id": "5f0c9a7e", "status": "busy"}\n\n'
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {"description": "Events without end", "content": {"text/event-stream": {"example": _EXAMPLE}}}
}
router = APIRouter(
    prefix="/api/events",
    tags=["events"],
    dependencies=[AdminOnly],
    default_response_class=Response,
    responses=_STREAM | errors(401, 403, 421, 422, 503),
)


@router.get("/progress", summary="Follow videos", responses=errors(400, 404))
async def follow_videos(
    request: Request,
    here: Here,
    video_ids: Annotated[str, Query(description="Numbers of at most 200 videos, separated by commas")] = "",
) -> Response:
    """Send events about some videos.

    `transcode_progress:{video_id}` comes first for each, then whenever it changed (at most four times a second); its
    data is what `GET /api/videos/{id}/progress` answers. `transcode_complete:{video_id}` has the same data, when a job
    ends, well or not. `video_deleted:{video_id}` is the last of a video, and the first of one that is not there; 404 is
    answered when none of them is. A `ping` comes when there was nothing for 30 seconds. Whoever connects again begins
    with how things are: nothing else has to be asked for. A stream that was opened by cookie ends with its session.
    """
    videos = _live(request).videos
    ids = _ids(video_ids)
    stream, missing = await videos.watch(ids, came_by_cookie(request))
    if len(missing) == len(ids):
        videos.leave(stream)
        raise video_not_found(missing[0])
    return _answer(here, stream, videos)


@router.get("/workers", summary="Follow workers")
async def follow_workers(request: Request, here: Here) -> Response:
    """Send `worker_status` for each worker, then for each that changed; `worker_removed` is the last of one."""
    workers = _live(request).workers
    return _answer(here, await workers.watch_all(came_by_cookie(request)), workers)


def _live(request: Request) -> Live:
    live: Live = request.app.state.live
    return live


def _answer(here: Parts, stream: Stream[Any], hub: Hub[Any]) -> EventStream:
    settings = here.settings
    return EventStream(
        stream,
        lambda: hub.leave(stream),
        retry_ms=settings.sse_reconnect_timeout_ms,
        ping_s=settings.sse_heartbeat_interval,
    )


def _ids(text: str) -> list[int]:
    """Read a list of numbers, separated by commas."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words or not all(_is_id(word) for word in words):
        raise ApiError(400, "VIDEO_IDS_INVALID", "video_ids is a list of numbers of videos, such as 12,13.")
    ids = list(dict.fromkeys(int(word) for word in words))
    if len(ids) > PAGE_LIMIT:
        raise ApiError(400, "VIDEO_IDS_TOO_MANY", f"A stream tells of at most {PAGE_LIMIT} videos, not of {len(ids)}.")
    return ids


def _is_id(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) <= 19 and 0 < int(word) <= ID_LIMIT
