"""GET /api/events: what happened anywhere, newest first; without a job it is the audit log."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import AwareDatetime

from api.openapi import errors
from api.parts import Here
from api.schemas import Listing
from api.schemas_jobs import Event
from api.security import AdminOnly
from api.videos import Cursor, Limit, cursor_invalid
from contracts.states import EventLevel
from mirror import reads_hooks
from mirror.cursors import BadCursor

router = APIRouter(prefix="/api/events", tags=["jobs"], dependencies=[AdminOnly], responses=errors(401, 403, 421, 503))


@router.get("", summary="What happened, newest first", responses=errors(400, 422))
async def list_events(
    here: Here,
    event: Annotated[
        str | None,
        Query(max_length=100, pattern=r"^[^\x00]*$", description="Only this event; `worker.` is all that begin so"),
    ] = None,
    level: Annotated[EventLevel | None, Query(description="Only of this level")] = None,
    actor: Annotated[
        str | None, Query(max_length=255, pattern=r"^[^\x00]*$", description="Only by this person or worker")
    ] = None,
    since: Annotated[AwareDatetime | None, Query(description="From this moment on, with its time zone")] = None,
    until: Annotated[AwareDatetime | None, Query(description="Before this moment")] = None,
    jobs: Annotated[bool, Query(description="false: only the audit log, the events without a job")] = True,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Listing[Event]:
    """Give one page; follow `next_cursor` until it is null."""
    try:
        async with here.database.read() as session:
            page = await reads_hooks.events_page(
                session,
                event=event,
                level=level,
                actor=actor,
                since=since,
                until=until,
                jobs=jobs,
                limit=limit,
                cursor=cursor,
            )
    except BadCursor as error:
        raise cursor_invalid() from error
    return Listing[Event](items=tuple(map(Event.model_validate, page.items)), next_cursor=page.next_cursor)
