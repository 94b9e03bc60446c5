"""/api/worker/source/… and /api/worker/output/…: the bytes of a claimed step, and of no other."""

import hashlib
import hmac
import re
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from fastapi.responses import Response, StreamingResponse
from pydantic import ValidationError

from api.bodies import chunks
from api.claims import LONGEST, Held, Place, place
from api.errors import ApiError
from api.openapi import errors, like
from api.parts import Here, Parts
from api.playback import not_here
from api.ranges import Unsatisfiable, asked_slice, quoted, still_same
from api.schemas_gateway import Stored, StoredObject, StoredObjects
from api.worker_auth import Caller, Welcome
from api.worker_steps import BY_KEY, GONE, NOT_YOURS, gateway_of, open_calls_of, opened
from contracts.gateway import CHECKSUM_HEADER, CLAIM_HEADER
from storage.local_writing import in_thread
from storage.store import ObjectFacts

router = APIRouter(prefix="/api/worker", tags=["workers"])

Claim = Annotated[str, Header(alias=CLAIM_HEADER, max_length=LONGEST, description="As `claim` gave it")]

BUFFER_BYTES = 1 << 20
_SHA256 = re.compile(r"[0-9a-f]{64}")
_OUTSIDE = like(403, "Not of this step, or not this worker's claim", "KEY_FORBIDDEN", "This step has no business …")
_READ: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/octet-stream": {}}, "description": "The whole object"},
    206: {"description": "The range that was asked for"},
    416: {"description": "The range lies outside the object"},
    **BY_KEY,
    **NOT_YOURS,
    **_OUTSIDE,
    **GONE,
    **errors(404, 421, 422, 503),
}


async def _holding(request: Request, caller: Welcome, claim: Claim) -> Held:
    """Insist that the claim is this worker's, and that it lives."""
    held = opened(request, claim, caller)
    await gateway_of(request).insist(held, caller.name)
    return held


@router.get("/source/{key:path}", summary="Read a step's source", response_class=Response, responses=_READ)
async def source(request: Request, key: str, here: Here, caller: Welcome, claim: Claim) -> Response:
    """Send the source of the step that is held, or a range of it."""
    held = await _holding(request, caller, claim)
    if key != held.source_key:
        raise _forbidden()
    return await _sent(request, here, key)


@router.get(
    "/output/{key:path}",
    summary="Look at what a step's folder has",
    response_class=Response,
    responses={**_READ, 200: {"model": StoredObjects, "description": "The object, or of a folder (`…/`) its list"}},
)
async def look(request: Request, key: str, here: Here, caller: Welcome, claim: Claim) -> Response:
    """Send an object that the step may write, or list one of its folders: a step goes on where another one stopped."""
    held = await _holding(request, caller, claim)
    if key.endswith("/"):
        if key not in held.folders:
            raise _forbidden()
        found = [facts for facts in await here.store.list(key) if place(held, facts.key)]
        listed = StoredObjects(items=tuple(_shown(facts) for facts in found))
        return Response(listed.model_dump_json(), media_type="application/json")
    _place(held, key)
    return await _sent(request, here, key)


@router.put(
    "/output/{key:path}",
    summary="Store what a step made",
    responses=BY_KEY
    | _OUTSIDE
    | GONE
    | like(400, "It is not what was announced", "CHECKSUM_WRONG", "What arrived has another SHA-256 than …")
    | like(429, "It sends too much at once", "TOO_MANY_FILES", "This worker has 64 files open already.")
    | like(413, "It is too large for what it is", "OUTPUT_TOO_LARGE", "This may have at most 536870912 bytes.")
    | errors(404, 408, 421, 422, 503, 507),
    openapi_extra={
        "requestBody": {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
    },
)
async def put(
    request: Request,
    key: str,
    here: Here,
    caller: Welcome,
    claim: Claim,
    checksum: Annotated[str, Header(alias=CHECKSUM_HEADER, description="SHA-256 of the body, in hex")],
) -> Stored:
    """Store one finished object under its final key. Segments are created once: the first one stays."""
    held = await _holding(request, caller, claim)
    how = _place(held, key)
    if not _SHA256.fullmatch(checksum):
        raise ApiError(400, "CHECKSUM_WRONG", f"{CHECKSUM_HEADER} has the SHA-256 of the body, in 64 hex digits.")
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > how.most_bytes:
        raise _too_large(how)
    with open_calls_of(request).file(caller.worker_id):
        return Stored(key=key, created=await _stored(request, here, caller, held, key, how, checksum))


async def _stored(
    request: Request, here: Parts, caller: Caller, held: Held, key: str, how: Place, checksum: str
) -> bool:
    """Take a body in, and give it its name when it is what was announced; False when somebody was first."""
    async with here.store.scratch(f"job{held.job_id}-output") as folder:
        path = folder / "object"
        await _receive(request, path, how, checksum)
        _readable(path, how)
        # It took a while to arrive: whoever has the step by now must not find it written to.
        await gateway_of(request).insist(held, caller.name)
        return await here.store.put_file(key, path, create_only=how.create_only)


@router.delete(
    "/output/{key:path}",
    status_code=204,
    summary="Remove what an earlier try of a step made",
    responses=BY_KEY | _OUTSIDE | GONE | errors(404, 421, 422, 503),
)
async def remove(request: Request, key: str, here: Here, caller: Welcome, claim: Claim) -> None:
    """Remove an object that the step would replace: sheets of a longer storyboard. Segments stay."""
    held = await _holding(request, caller, claim)
    if _place(held, key).create_only:
        raise _forbidden()
    await here.store.delete(key)


async def _receive(request: Request, path: Path, how: Place, checksum: str) -> None:
    """Write a body beside its place, and insist that it is what was announced."""
    digest = hashlib.sha256()
    size = 0
    file = await in_thread(path.open, "wb")
    with file:
        buffer = bytearray()

        async def flush() -> None:
            await in_thread(_write, file, digest, bytes(buffer))
            buffer.clear()

        async for chunk in chunks(request):
            size += len(chunk)
            if size > how.most_bytes:
                raise _too_large(how)
            buffer += chunk
            if len(buffer) >= BUFFER_BYTES:
                await flush()
        await flush()
    if not hmac.compare_digest(digest.hexdigest(), checksum):
        raise ApiError(400, "CHECKSUM_WRONG", "What arrived has another SHA-256 than was announced.")


def _readable(path: Path, how: Place) -> None:
    """Insist that what our own processes will read is what they expect."""
    if how.model is not None:
        try:
            how.model.model_validate_json(path.read_bytes())
        except ValidationError as error:
            raise ApiError(
                422, "OUTPUT_INVALID", f"This is no {how.model.__name__}: {error.errors()[0]['msg']}."
            ) from None


def _write(file: Any, digest: Any, data: bytes) -> None:
    digest.update(data)
    file.write(data)
    file.flush()  # a disk that is full says so now, and not when the file is closed


async def _sent(request: Request, here: Parts, key: str) -> Response:
    facts = await here.store.stat(key)
    if facts is None:
        raise not_here()
    headers = {
        "Content-Type": "application/octet-stream",
        "Accept-Ranges": "bytes",
        "ETag": quoted(facts.etag),
        "Cache-Control": "no-store",
    }
    part = None
    if still_same(request.headers.get("if-range"), facts.etag, facts.modified_at):
        try:
            part = asked_slice(request.headers.get("range"), facts.size_bytes)
        except Unsatisfiable as error:
            outside = {"Content-Range": f"bytes */{facts.size_bytes}"}
            raise ApiError(416, "RANGE_INVALID", "The range lies outside the file.", headers=outside) from error
    start, length = (part.start, part.length) if part else (0, facts.size_bytes)
    headers["Content-Length"] = str(length)
    if part:
        headers["Content-Range"] = f"bytes {start}-{start + length - 1}/{facts.size_bytes}"
    sent = here.store.read(key, start=start, length=length)
    return StreamingResponse(sent, status_code=206 if part else 200, headers=headers)


def _place(held: Held, key: str) -> Place:
    how = place(held, key)
    if how is None:
        raise _forbidden()
    return how


def _shown(facts: ObjectFacts) -> StoredObject:
    return StoredObject.model_validate(facts)


def _forbidden() -> ApiError:
    return ApiError(403, "KEY_FORBIDDEN", "This step has no business with that object.")


def _too_large(how: Place) -> ApiError:
    return ApiError(413, "OUTPUT_TOO_LARGE", f"This may have at most {how.most_bytes} bytes.")
