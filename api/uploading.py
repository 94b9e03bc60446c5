"""POST and PUT /api/videos: two ways to send a file, one way in."""

from contextlib import AsyncExitStack, aclosing
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response

from api.bodies import chunks, discard
from api.fields import (
    Details,
    clean_description,
    clean_idempotency_key,
    clean_is_paid,
    clean_owner,
    clean_qualities,
    clean_tier,
    clean_title,
)
from api.intake import Intake, Source, too_large
from api.multipart import boundary_of, invalid, read_form
from api.openapi import FORM_BODY, RAW_BODY, errors
from api.parts import Here
from api.schemas import Created
from api.security import AdminOnly
from mirror.writes import CreatedVideo
from runtime.settings import Settings

router = APIRouter(prefix="/api/videos", tags=["videos"], dependencies=[AdminOnly])

FORM_SLACK_BYTES = 3 << 20  # what a form may hold besides its file
_ERRORS = errors(400, 401, 403, 408, 413, 421, 422, 503, 507)
_KEY = Header(description="Sent again, it repeats the first answer instead of making a second video")

Key = Annotated[str | None, _KEY]


class VideoForm:
    """Takes a form in whatever order it comes; a bad field before the file refuses before a byte is stored."""

    def __init__(self, intake: Intake, stack: AsyncExitStack, settings: Settings) -> None:
        self._intake, self._stack = intake, stack
        self._ladder = tuple(rung.name for rung in settings.ladder)
        self._source: Source | None = None
        self.details = Details()

    @property
    def source(self) -> Source:
        if self._source is None:
            raise invalid("The form holds no file.")
        return self._source

    async def field(self, name: str, value: str) -> None:
        match name:
            case "title":
                self.details = replace(self.details, title=clean_title(value))
            case "description":
                self.details = replace(self.details, description=clean_description(value))
            case "owner":
                self.details = replace(self.details, owner=clean_owner(value))
            case "tier":
                self.details = replace(self.details, tier=clean_tier(value))
            case "is_paid":
                self.details = replace(self.details, is_paid=clean_is_paid(value))
            case "qualities":  # a list of checkboxes sends one field each
                together = ",".join((*self.details.qualities, value))
                self.details = replace(self.details, qualities=clean_qualities(together, self._ladder))

    async def file_begins(self, filename: str) -> None:
        self._source = await self._stack.enter_async_context(self._intake.source(filename))

    async def file_bytes(self, chunk: bytes) -> None:
        await self.source.write(chunk)


def _refuse_too_large(request: Request, limit_bytes: int, slack_bytes: int = 0) -> None:
    """Refuse by the announced length, before a byte is read."""
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > limit_bytes + slack_bytes:
        raise too_large(limit_bytes)


def _answer(video: CreatedVideo, response: Response) -> Created:
    response.headers["Location"] = f"/api/videos/{video.video_id}"
    if video.repeated:
        response.headers["Idempotent-Replayed"] = "true"
    return Created.model_validate(video)


@router.post(
    "", status_code=201, summary="Upload a video as a form", openapi_extra=FORM_BODY, responses=_ERRORS | errors(415)
)
async def upload_form(request: Request, response: Response, here: Here, idempotency_key: Key = None) -> Created:
    """Stream the field `file` to storage and start its job. The other fields may come before it or after it."""
    intake, key = Intake(here), clean_idempotency_key(idempotency_key)
    boundary_of(request.headers.get("content-type"))
    if first := await intake.repeated(key):
        await discard(request)
        return _answer(first, response)
    _refuse_too_large(request, here.settings.max_upload_size, FORM_SLACK_BYTES)
    async with AsyncExitStack() as stack:
        form = VideoForm(intake, stack, here.settings)
        body = await stack.enter_async_context(aclosing(chunks(request)))
        await read_form(body, request.headers.get("content-type"), form)
        return _answer(await intake.accept(form.source, form.details, key), response)


@router.put("", status_code=201, summary="Upload a video as it is", openapi_extra=RAW_BODY, responses=_ERRORS)
async def upload_raw(
    request: Request,
    response: Response,
    here: Here,
    filename: Annotated[str, Query(description="Gives the extension and, by default, the title")] = "",
    title: Annotated[str, Query(description="At most 255 characters")] = "",
    description: str = "",
    owner: Annotated[str, Query(description="Owners take turns within a tier")] = "",
    tier: Annotated[str, Query(description="viral, creator, hobby, trial, free or bulk")] = "free",
    is_paid: Annotated[bool, Query(description="What is not paid for waits with the free ones")] = True,
    qualities: Annotated[str, Query(description="Such as 720p,720p-av1; none means all")] = "",
    idempotency_key: Key = None,
) -> Created:
    """Stream the request's body to storage and start its job: `curl -T big.mp4 '…/api/videos?filename=big.mp4'`."""
    intake, key = Intake(here), clean_idempotency_key(idempotency_key)
    details = Details(
        title=clean_title(title),
        description=clean_description(description),
        owner=clean_owner(owner),
        tier=clean_tier(tier),
        is_paid=is_paid,
        qualities=clean_qualities(qualities, (rung.name for rung in here.settings.ladder)),
    )
    if first := await intake.repeated(key):
        await discard(request)
        return _answer(first, response)
    _refuse_too_large(request, here.settings.max_upload_size)
    async with intake.source(filename) as source, aclosing(chunks(request)) as body:
        async for chunk in body:
            await source.write(chunk)
        return _answer(await intake.accept(source, details, key), response)
