"""GET /api/jobs: the list, one job, its steps, its events."""

from typing import Annotated

from fastapi import APIRouter, Path, Query

from api.errors import job_not_found
from api.openapi import errors
from api.parts import Here
from api.schemas import Listing
from api.schemas_jobs import Event, Job, Step
from api.security import AdminOnly
from api.videos import ID_LIMIT, Cursor, Limit, cursor_invalid
from contracts.ids import JobId
from contracts.states import JobState
from mirror import reads

router = APIRouter(prefix="/api/jobs", tags=["jobs"], dependencies=[AdminOnly], responses=errors(401, 403, 421, 503))

Id = Annotated[int, Path(ge=1, le=ID_LIMIT, description="The job's number")]


@router.get("", summary="List jobs, newest first", responses=errors(400, 422))
async def list_jobs(
    here: Here,
    state: Annotated[JobState | None, Query(description="Only jobs in this state")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Listing[Job]:
    try:
        async with here.database.read() as session:
            page = await reads.jobs_page(session, state=state, limit=limit, cursor=cursor)
    except reads.BadCursor as error:
        raise cursor_invalid() from error
    return Listing[Job](items=tuple(Job.model_validate(view) for view in page.items), next_cursor=page.next_cursor)


@router.get("/{job_id}", summary="One job", responses=errors(404, 422))
async def get_job(job_id: Id, here: Here) -> Job:
    async with here.database.read() as session:
        view = await reads.job(session, JobId(job_id))
    if view is None:
        raise job_not_found(job_id)
    return Job.model_validate(view)


@router.get("/{job_id}/steps", summary="Every attempt of every step", responses=errors(404, 422))
async def get_steps(job_id: Id, here: Here) -> list[Step]:
    """Give the attempts in the order in which they started, with who held them and how they ended."""
    async with here.database.read() as session:
        if await reads.job(session, JobId(job_id)) is None:
            raise job_not_found(job_id)
        return [Step.model_validate(view) for view in await reads.steps(session, JobId(job_id))]


@router.get("/{job_id}/events", summary="What happened", responses=errors(404, 422))
async def get_events(
    job_id: Id,
    here: Here,
    after: Annotated[int, Query(ge=0, le=ID_LIMIT, description="Only events after this `event_id`")] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 500,
) -> list[Event]:
    """Give the events, oldest first; ask again with the last `event_id` as `after` for what is new."""
    async with here.database.read() as session:
        if await reads.job(session, JobId(job_id)) is None:
            raise job_not_found(job_id)
        views = await reads.events(session, JobId(job_id), after=after, limit=limit)
        return [Event.model_validate(view) for view in views]
