"""POST /api/videos/{id}/publish, unpublish and links: who may watch."""

import time
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Path, Request

from api.commands import Actor, shown_again
from api.errors import video_not_found
from api.fields import clean_actor
from api.openapi import errors
from api.parts import Here
from api.schemas import Video
from api.schemas_sharing import Link, NewLink
from api.security import AdminOnly, keys_of
from api.videos import ID_LIMIT
from contracts.ids import VideoId
from contracts.layout import MASTER
from mirror import reads, writes_publishing

router = APIRouter(
    prefix="/api/videos", tags=["videos"], dependencies=[AdminOnly], responses=errors(401, 403, 404, 421, 422, 503)
)

Id = Annotated[int, Path(ge=1, le=ID_LIMIT, description="The video's number")]


@router.post("/{video_id}/publish", summary="Publish")
async def publish(video_id: Id, request: Request, here: Here, actor: Actor = None) -> Video:
    """Let everybody watch a video, at `/watch/{slug}` and in other pages. It happens by itself when a video can be
    played, unless it was unpublished before."""
    async with here.database.write() as session:
        await writes_publishing.publish_video(session, VideoId(video_id), clean_actor(actor))
    return _there(await shown_again(here, request, video_id))


@router.post("/{video_id}/unpublish", summary="Unpublish")
async def unpublish(video_id: Id, request: Request, here: Here, actor: Actor = None) -> Video:
    """Take a video off the site until it is published again; who is signed in, or has a link, still sees it.

    Where no secret is set, everybody on this machine is signed in.
    """
    async with here.database.write() as session:
        await writes_publishing.unpublish_video(session, VideoId(video_id), clean_actor(actor))
    return _there(await shown_again(here, request, video_id))


@router.post("/{video_id}/links", summary="Make a link that expires")
async def make_link(video_id: Id, request: Request, here: Here, wanted: NewLink | None = None) -> Link:
    """Give an address at which a video can be watched until then, published or not.

    Nothing is stored: deleting the video, or another admin secret, ends every link of it before its time.
    """
    wanted = wanted or NewLink()
    async with here.database.read() as session:
        video = await reads.video(session, VideoId(video_id))
    if video is None or video.deleted_at is not None:
        raise video_not_found(video_id)
    expires_at = int(time.time()) + wanted.expires_in_s
    place = f"~{keys_of(request).sign('link', video.slug, expires_at)}/{video.slug}"
    return Link(
        url=f"/watch/{place}",
        stream_url=f"/videos/{place}/{MASTER}",
        expires_at=datetime.fromtimestamp(expires_at, UTC),
    )


def _there(video: Video) -> Video:
    if video.deleted_at is not None:
        raise video_not_found(video.video_id)
    return video
