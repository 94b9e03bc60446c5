"""GET /api/videos: the list, one video, its progress."""

import asyncio
from contextlib import suppress
from typing import Annotated

from fastapi import APIRouter, Path, Query

from api.errors import ApiError, video_not_found
from api.fields import clean_owner, clean_search
from api.openapi import errors
from api.parts import Here, Parts
from api.schemas import Listing, Progress, Video
from api.schemas_report import Report, VideoDetail
from api.security import AdminOnly
from contracts.errors import VlogError
from contracts.ids import VideoId
from contracts.layout import THUMBNAIL, video_prefix
from contracts.states import Tier, VideoStatus
from mirror import reads
from mirror.views import VideoView

router = APIRouter(
    prefix="/api/videos", tags=["videos"], dependencies=[AdminOnly], responses=errors(401, 403, 421, 503)
)

ID_LIMIT = 2**63 - 1  # what the id columns hold; anything above is nobody's
PAGE_LIMIT = 200

Id = Annotated[int, Path(ge=1, le=ID_LIMIT, description="The video's number")]
Limit = Annotated[int, Query(ge=1, le=PAGE_LIMIT)]
Cursor = Annotated[str | None, Query(max_length=200, description="`next_cursor` of the page before")]


def cursor_invalid() -> ApiError:
    return ApiError(400, "CURSOR_INVALID", "This cursor is not one of ours; start again without it.")


@router.get("", summary="List videos, newest first", responses=errors(400, 422))
async def list_videos(
    here: Here,
    status: Annotated[VideoStatus | None, Query(description="Only these")] = None,
    owner: Annotated[str | None, Query(description="Only this owner's")] = None,
    tier: Annotated[Tier | None, Query(description="Only this tier's")] = None,
    search: Annotated[str | None, Query(description="Words in the title", max_length=200)] = None,
    deleted: Annotated[bool, Query(description="Only deleted ones, as long as they can be restored")] = False,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Listing[Video]:
    """Give one page; follow `next_cursor` until it is null. Deleted videos are left out, or all there is."""
    wanted_owner = clean_owner(owner) if owner is not None else None
    words = clean_search(search) if search is not None else None
    try:
        async with here.database.read() as session:
            page = await reads.videos_page(
                session,
                limit=limit,
                cursor=cursor,
                status=status,
                owner=wanted_owner,
                tier=tier,
                search=words,
                deleted=deleted,
            )
    except reads.BadCursor as error:
        raise cursor_invalid() from error
    items = await asyncio.gather(*(shown(here, view) for view in page.items))
    return Listing[Video](items=tuple(items), next_cursor=page.next_cursor)


@router.get("/{video_id}", summary="One video", responses=errors(404, 422))
async def get_video(video_id: Id, here: Here) -> VideoDetail:
    """Give one video, with what was found in its source and what was decided about it."""
    async with here.database.read() as session:
        view = await reads.video(session, VideoId(video_id))
        report = await reads.report(session, VideoId(video_id)) if view is not None else None
    if view is None or report is None or view.deleted_at is not None:
        raise video_not_found(video_id)
    return VideoDetail(**(await shown(here, view)).model_dump(), report=Report.of(report))


async def shown(here: Parts, view: VideoView) -> Video:
    """Show a video with its thumbnail, if it has one: a video becomes ready even when its picture could not be made."""
    picture = None
    if view.status is VideoStatus.READY or view.playable_at is not None:
        with suppress(VlogError):  # storage that is away costs the picture, not the answer
            picture = await here.store.stat(video_prefix(view.slug) + THUMBNAIL)
    return Video.of(view, thumbnail=picture is not None)


@router.get("/{video_id}/progress", summary="How far one video is", responses=errors(404, 422))
async def get_progress(video_id: Id, here: Here) -> Progress:
    """Give the newest job's step, its percent, each quality's, and how long it may still take."""
    async with here.database.read() as session:
        view = await reads.progress(session, VideoId(video_id))
    if view is None:
        raise video_not_found(video_id)
    return Progress.model_validate(view)
