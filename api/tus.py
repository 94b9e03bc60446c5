"""/api/uploads: tus 1.0.0, uploads that go on where they stopped. https://tus.io/protocols/resumable-upload"""

import base64
import hashlib
import re
import secrets
from contextlib import aclosing, suppress
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Request, Response

from api.bodies import chunks, discard
from api.errors import ApiError, away
from api.fields import clean_idempotency_key
from api.intake import Intake, too_large
from api.openapi import errors, like
from api.parts import Here, Parts
from api.ranges import http_date
from api.receiving import Receiving, more_than_announced, offset_wrong, upload_not_found
from api.security import AdminOnly
from api.tus_headers import (
    CONTENT_TYPE,
    VERSION,
    Checksum,
    bad,
    clean_checksum,
    clean_metadata,
    clean_number,
    described,
)
from api.tus_protocol import UPLOADS, VIDEO_ID
from contracts.errors import SourceEmpty
from mirror import uploads
from mirror.uploads import NewUpload, UploadView

IDLE_S = 30.0  # a client that was cut off comes back, and finds the upload free
_ID = re.compile(r"[A-Za-z0-9_-]{20,64}")


async def require_version(
    tus_resumable: Annotated[
        str | None, Header(description=f"Always `{VERSION}`; after who is asking, before all else")
    ] = None,
) -> None:
    if tus_resumable != VERSION:
        raise ApiError(412, "TUS_VERSION_UNKNOWN", f"Send Tus-Resumable: {VERSION}.", headers={"Tus-Version": VERSION})


_ERRORS = (
    errors(401, 403, 404, 421, 422, 503)
    | like(410, "Its time is over", "UPLOAD_EXPIRED", "The time of this upload is over; please begin anew.")
    | like(412, "Not this version of tus", "TUS_VERSION_UNKNOWN", f"Send Tus-Resumable: {VERSION}.")
    | like(423, "Another request is sending", "UPLOAD_LOCKED", "Another request is sending to this upload.")
    | like(501, "The storage cannot", "UPLOADS_NOT_RESUMABLE", "This storage takes whole files only: use PUT …")
)
_BODY = (
    errors(400, 408, 413, 507)
    | like(415, "Not a piece of an upload", "CONTENT_TYPE_WRONG", f"Send {CONTENT_TYPE}.")
    | like(
        460, "Some bytes are not those that were sent", "CHECKSUM_MISMATCH", "The bytes do not fit their checksum; …"
    )
)
_PIECE = {
    "requestBody": {
        "description": "The next bytes",
        "content": {CONTENT_TYPE: {"schema": {"type": "string", "format": "binary"}}},
    }
}
router = APIRouter(
    prefix=UPLOADS, tags=["uploads"], dependencies=[AdminOnly, Depends(require_version)], responses=_ERRORS
)

Sum = Annotated[
    str | None, Header(description="`sha1`, `sha256` or `md5`, and the sum of this request's bytes in Base64")
]


@router.post(
    "", status_code=201, response_class=Response, summary="Begin an upload", openapi_extra=_PIECE, responses=_BODY
)
async def create(
    request: Request,
    here: Here,
    upload_length: Annotated[str | None, Header(description="Bytes of the whole file")] = None,
    upload_metadata: Annotated[
        str | None,
        Header(
            description="Names, each with a value in Base64: `filename`, `title`, `description`, `owner`, `tier`, "
            "`is_paid`, `qualities`, as `PUT /api/videos` has them; others are kept and not looked at"
        ),
    ] = None,
    upload_checksum: Sum = None,
    upload_concat: Annotated[str | None, Header(include_in_schema=False)] = None,
    idempotency_key: Annotated[
        str | None, Header(description="Sent again, it gives the upload that it began, and begins none")
    ] = None,
) -> Response:
    """Take a file's size and name, and give, in `Location`, where to send it. Its first bytes may come along."""
    receiving = Receiving(here)
    if upload_concat is not None:  # each part would become a video of its own
        raise bad("CONCATENATION_UNSUPPORTED", "Send the file in one upload, not in parallel ones.")
    length = clean_number(upload_length, "Upload-Length")
    if length == 0:
        raise SourceEmpty("The file is empty.")
    if length > here.settings.max_upload_size:
        raise too_large(here.settings.max_upload_size)
    new = await _new_upload(here, length, upload_metadata or "", clean_idempotency_key(idempotency_key))
    checksum = _checksum_of_body(request, upload_checksum, length) if _has_body(request) else None
    async with here.database.write() as session:
        is_new = await uploads.begin_upload(session, new, keep_s=here.settings.upload_expiry_hours * 3600)
    if not is_new:
        try:
            found = await receiving.whole(new.id)
        except ApiError as error:
            if error.status != 404:
                raise
            raise away("UPLOAD_INTERRUPTED", "What began this upload was cut off. Please send it again.") from error
        if (found.size_bytes, found.metadata) != (new.size_bytes, new.metadata):
            raise ApiError(409, "IDEMPOTENCY_KEY_USED", "This Idempotency-Key began the upload of another file.")
        await discard(request)
        return _answer(found, 201, {"Location": f"{UPLOADS}/{found.id}", "Idempotent-Replayed": "true"})
    if _has_body(request):
        async with receiving.sending(new.id):
            try:
                async with aclosing(chunks(request, idle_s=IDLE_S)) as body:
                    found = await receiving.receive(new.id, 0, body, checksum)
            except BaseException:
                with suppress(ApiError):
                    await receiving.drop(new.id)  # nobody was told its address
                raise
    else:
        found = await receiving.find(new.id)
    return _answer(found, 201, {"Location": f"{UPLOADS}/{new.id}"})


@router.head("/{upload_id}", response_class=Response, summary="How much of an upload is here")
async def look(upload_id: str, here: Here) -> Response:
    """Say in `Upload-Offset` where to go on; of a whole one, in `Vlog-Video-Id`, which video it became."""
    found = await Receiving(here).whole(_clean_id(upload_id))
    headers = {"Upload-Length": str(found.size_bytes)}
    return _answer(found, 200, headers | ({"Upload-Metadata": found.metadata} if found.metadata else {}))


@router.patch(
    "/{upload_id}",
    status_code=204,
    response_class=Response,
    summary="Send the next bytes",
    openapi_extra=_PIECE,
    responses=_BODY | like(409, "Not where it stopped", "OFFSET_WRONG", "This upload goes on at byte 1048576."),
)
async def send(
    upload_id: str,
    request: Request,
    here: Here,
    upload_offset: Annotated[
        str | None, Header(description="Where these bytes belong: at the end of what is here")
    ] = None,
    upload_checksum: Sum = None,
) -> Response:
    """Add bytes. The last ones make it a video, whose number `Vlog-Video-Id` is; its job has started then.

    Bytes that came before a connection broke count, within the second; with a checksum all of them count or none do.
    """
    receiving = Receiving(here)
    found = await receiving.find(_clean_id(upload_id))
    offset = clean_number(upload_offset, "Upload-Offset")
    if offset > found.size_bytes:
        raise offset_wrong(found)
    checksum = _checksum_of_body(request, upload_checksum, found.size_bytes - offset)
    async with aclosing(chunks(request, idle_s=IDLE_S)) as body:
        found = await receiving.receive(found.id, offset, body, checksum)
    return _answer(found, 204)


@router.delete("/{upload_id}", status_code=204, response_class=Response, summary="Give an upload up")
async def terminate(upload_id: str, here: Here) -> Response:
    """Forget an upload and its bytes. A video that it has become stays."""
    await Receiving(here).drop(_clean_id(upload_id))
    return Response(status_code=204)


def _clean_id(upload_id: str) -> str:
    if not _ID.fullmatch(upload_id):
        raise upload_not_found()
    return upload_id


async def _new_upload(here: Parts, length: int, metadata: str, idempotency_key: str | None) -> NewUpload:
    told = described(clean_metadata(metadata), (rung.name for rung in here.settings.ladder))
    _, key = await Intake(here).free_key(told.filename)
    return NewUpload(
        id=secrets.token_urlsafe(24) if idempotency_key is None else _id_of(idempotency_key),
        key=key,
        size_bytes=length,
        metadata=metadata,
        filename=told.filename,
        title=told.details.title,
        description=told.details.description,
        owner=told.details.owner,
        tier=told.details.waits_as,
        qualities=told.details.qualities,
    )


def _id_of(idempotency_key: str) -> str:
    """Give the same id for the same key. Ids are no secrets: who may come in is asked each time."""
    digest = hashlib.sha256(idempotency_key.encode()).digest()
    return "key-" + base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _has_body(request: Request) -> bool:
    return "transfer-encoding" in request.headers or request.headers.get("content-length", "0") != "0"


def _checksum_of_body(request: Request, text: str | None, left: int) -> Checksum | None:
    """Look at what is said of a body, before a byte of it is read."""
    if request.headers.get("content-type") != CONTENT_TYPE:
        raise ApiError(415, "CONTENT_TYPE_WRONG", f"Send {CONTENT_TYPE}.")
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > max(left, 0):
        raise more_than_announced()
    return clean_checksum(text)


def _answer(found: UploadView, status: int, headers: dict[str, str] | None = None) -> Response:
    headers = {"Upload-Offset": str(found.offset_bytes), **(headers or {})}
    if found.video_id is not None:
        headers[VIDEO_ID] = str(found.video_id)
    else:
        headers["Upload-Expires"] = http_date(found.expires_at)
    return Response(status_code=status, headers=headers)
