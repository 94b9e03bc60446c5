"""POST /api/videos/{id}/… and /api/jobs/{id}/…: what people may command.

A command is written down before anybody is told. One that does not fit the state answers 409 and changes nothing; one
that changes nothing answers 200; one that Temporal has not heard yet answers 503 and is carried out all the same.
"""

from typing import Annotated

import structlog
from fastapi import APIRouter, Header, Request, Response

from api.errors import ApiError, away, job_not_found, video_not_found
from api.fields import clean_actor, clean_qualities
from api.jobs import Id as AnyJob
from api.openapi import errors
from api.parts import Here, Parts
from api.playback import Visibility
from api.schemas import Created, Video
from api.schemas_commands import NewPriority, Retranscode
from api.schemas_jobs import Job
from api.security import AdminOnly
from api.telling import Told
from api.videos import Id as AnyVideo
from api.videos import shown
from contracts.errors import JOB_ENDED
from contracts.ids import JobId, VideoId
from contracts.tiers import resolve_tier
from mirror import reads, writes_again, writes_commands, writes_deleting
from mirror.commands import Wish
from mirror.writes_again import Again, NewJob

log = structlog.get_logger(__name__)

_ERRORS = errors(401, 403, 404, 409, 421, 422, 503)
videos = APIRouter(prefix="/api/videos", tags=["videos"], dependencies=[AdminOnly], responses=_ERRORS)
jobs = APIRouter(prefix="/api/jobs", tags=["jobs"], dependencies=[AdminOnly], responses=_ERRORS)

Actor = Annotated[str | None, Header(alias="X-Actor", description="Who asks, for the job's events")]


@videos.post("/{video_id}/retry", status_code=201, summary="Make what is missing")
async def retry(video_id: AnyVideo, response: Response, here: Here, actor: Actor = None) -> Created:
    """Go on with a job that failed or was cancelled, or make the renditions that a ready video lacks.

    It is a new job in the output of the old one: every whole segment that is there is kept.
    """
    ask = Again(
        actor=clean_actor(actor),
        max_attempts=here.settings.max_retry_attempts,
        keep_completed=here.settings.keep_completed_qualities,
    )
    async with here.database.write() as session:
        new = await writes_again.retry_video(session, VideoId(video_id), ask)
    return await _begin(here, response, new, video_id)


@videos.post("/{video_id}/retranscode", status_code=201, summary="Make it anew", responses=errors(400))
async def retranscode(
    video_id: AnyVideo, response: Response, here: Here, wanted: Retranscode | None = None, actor: Actor = None
) -> Created:
    """Encode all of a video again, or some qualities; what it has is served until the new stream is verified."""
    wanted = wanted or Retranscode()
    ask = Again(
        actor=clean_actor(actor),
        max_attempts=here.settings.max_retry_attempts,
        tier=wanted.tier,
        qualities=clean_qualities(",".join(wanted.qualities), (rung.name for rung in here.settings.ladder)),
        delete_transcription=wanted.delete_transcription,
    )
    async with here.database.write() as session:
        new = await writes_again.retranscode_video(session, VideoId(video_id), ask)
    return await _begin(here, response, new, video_id)


@videos.post("/{video_id}/cancel", summary="Cancel its job")
async def cancel_video(video_id: AnyVideo, here: Here, actor: Actor = None) -> Job:
    """Cancel the newest job of a video; one that has ended stays as it is."""
    async with here.database.read() as session:
        view = await reads.video(session, VideoId(video_id))
    if view is None or view.deleted_at is not None or view.job_id is None:
        raise video_not_found(video_id)
    return await cancel(view.job_id, here, actor)


@videos.delete("/{video_id}", summary="Delete")
async def delete(video_id: AnyVideo, request: Request, here: Here, actor: Actor = None) -> Video:
    """Take a video off the site at once and cancel its job. It can be restored until it is purged."""
    async with here.database.write() as session:
        wish = await writes_deleting.delete_video(session, VideoId(video_id), clean_actor(actor))
    if wish is None or wish.ended:
        # A retry that was being written meanwhile was not to be seen. No job begins after the mark: look once more.
        async with here.database.write() as session:
            wish = await writes_deleting.delete_video(session, VideoId(video_id), clean_actor(actor))
    video = await shown_again(here, request, video_id)
    if wish is not None and wish.started:
        await here.teller.tell(wish)  # if Temporal is away it is told later: the video is gone all the same
    return video


@videos.post("/{video_id}/restore", summary="Restore what was deleted")
async def restore(video_id: AnyVideo, request: Request, here: Here, actor: Actor = None) -> Video:
    """Bring a deleted video back, under the address it had. A job that the deletion cancelled can be retried."""
    async with here.database.write() as session:
        await writes_deleting.restore_video(session, VideoId(video_id), clean_actor(actor))
    return await shown_again(here, request, video_id)


@jobs.post("/{job_id}/cancel", summary="Cancel")
async def cancel(job_id: AnyJob, here: Here, actor: Actor = None) -> Job:
    """Stop a job: its encoders die, what waits never starts, what it made is removed. An ended one stays as it is.

    While it is being published it is too late: the video becomes ready.
    """
    async with here.database.write() as session:
        wish = await writes_commands.cancel_job(session, JobId(job_id), clean_actor(actor))
    return await _carry_out(here, wish, job_id)


@jobs.post("/{job_id}/pause", summary="Pause")
async def pause(job_id: AnyJob, here: Here, actor: Actor = None) -> Job:
    """Free the workers of a job; what is stored stays, and nothing of it is encoded twice."""
    async with here.database.write() as session:
        wish = await writes_commands.pause_job(session, JobId(job_id), clean_actor(actor))
    return await _carry_out(here, wish, job_id)


@jobs.post("/{job_id}/resume", summary="Go on after a pause")
async def resume(job_id: AnyJob, here: Here, actor: Actor = None) -> Job:
    async with here.database.write() as session:
        wish = await writes_commands.resume_job(session, JobId(job_id), clean_actor(actor))
    return await _carry_out(here, wish, job_id)


@jobs.post("/{job_id}/priority", summary="Change who waits for whom")
async def priority(job_id: AnyJob, wanted: NewPriority, here: Here, actor: Actor = None) -> Job:
    """Give a job another tier.

    What of it waits in a queue already is moved, the steps of a long video's parts too; what runs goes on. Within a
    tier owners take turns, and what lets people begin to watch goes before all else.
    """
    tier = resolve_tier(wanted.tier, wanted.is_paid)
    async with here.database.write() as session:
        wish = await writes_commands.prioritize_job(session, JobId(job_id), tier, clean_actor(actor))
    return await _carry_out(here, wish, job_id)


async def _begin(here: Parts, response: Response, new: NewJob | None, video_id: int) -> Created:
    """Start a job whose row is committed; a start that fails is caught up later, as an upload's is."""
    if new is None:
        raise video_not_found(video_id)
    log.info("job_created", video_id=new.video_id, job_id=new.job_id, kind=new.request.kind.value)
    try:
        await here.starter.start(new.request, new.title)
    except Exception as error:
        log.warning("start_left_to_the_starter", video_id=new.video_id, error=str(error) or type(error).__name__)
    response.headers["Location"] = f"/api/jobs/{new.job_id}"
    return Created.model_validate(new)


async def _carry_out(here: Parts, wish: Wish | None, job_id: int) -> Job:
    """Tell Temporal, and answer with the job as it is then."""
    if wish is None:
        raise job_not_found(job_id)
    if wish.started and wish.untold:
        match await here.teller.tell(wish):
            case Told.TOO_LATE:
                raise ApiError(409, JOB_ENDED, f"Job {job_id} is ending or has ended.")
            case Told.AWAY | Told.GONE:
                raise away(
                    "TEMPORAL_UNAVAILABLE",
                    "Neither Temporal nor a worker hears it right now. It is noted, and is done as soon as they do.",
                )
    async with here.database.read() as session:
        view = await reads.job(session, JobId(job_id))
    if view is None:
        raise job_not_found(job_id)
    return Job.model_validate(view)


async def shown_again(here: Parts, request: Request, video_id: int) -> Video:
    """Show a video, deleted or not, and let playback look again whether it may be seen."""
    async with here.database.read() as session:
        view = await reads.video(session, VideoId(video_id))
    if view is None:
        raise video_not_found(video_id)
    visibility: Visibility = request.app.state.visibility
    visibility.forget(view.slug)
    return await shown(here, view)
