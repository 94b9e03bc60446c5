"""What the OpenAPI page says beyond what the types say: tags, the shape of errors, bodies read by hand."""

from typing import Any

from pydantic import BaseModel

from api.schemas import ErrorBody

TAGS = [
    {"name": "session", "description": "Sign in with the admin secret; a cookie then stands for it."},
    {"name": "videos", "description": "Upload a video, list them, follow one."},
    {
        "name": "uploads",
        "description": "Resumable uploads by tus 1.0.0: any tus client, given `/api/uploads` as its endpoint.",
    },
    {"name": "jobs", "description": "One run of a video through the pipeline: its state, its steps, its events."},
    {
        "name": "workers",
        "description": "Who encodes: register one and give it a key, see what each does, disable, enable or revoke it.",
    },
    {"name": "events", "description": "What happens, as server-sent events."},
    {"name": "webhooks", "description": "Who is told of what, and what became of every telling."},
    {"name": "playback", "description": "HLS and DASH, public."},
    {"name": "health", "description": "Is it alive, and are its neighbours?"},
]

DESCRIPTION = """Self-hosted, durable video transcoding.

Upload with `POST /api/videos` (a form), `PUT /api/videos` (the raw file) or any tus client (`/api/uploads`), follow
`/api/videos/{id}/progress`, play `stream_url`. Every error has the body `{"error": CODE, "detail": sentence}`."""

_EXAMPLES: dict[int, tuple[str, str, str]] = {
    400: ("What was sent cannot be taken", "SOURCE_EMPTY", "The file is empty."),
    401: (
        "The admin secret is missing",
        "ADMIN_SECRET_REQUIRED",
        "Sign in, or send the admin secret in the X-Admin-Secret header.",
    ),
    403: ("The admin secret is wrong", "ADMIN_SECRET_WRONG", "The admin secret is not right."),
    404: ("There is no such thing", "VIDEO_NOT_FOUND", "There is no video 12."),
    408: ("The client fell silent", "UPLOAD_STALLED", "Nothing arrived for 60 seconds."),
    409: ("The command does not fit the state", "JOB_UNFINISHED", "Job 34 of this video has not ended yet."),
    413: ("The file is too large", "UPLOAD_TOO_LARGE", "A file may have at most 107374182400 bytes."),
    415: ("Not a form", "MULTIPART_EXPECTED", "Send a multipart form here, or the raw file with PUT."),
    421: (
        "Without a secret only names of this machine are answered",
        "HOST_UNKNOWN",
        "Ask for localhost or 127.0.0.1; other names are answered once VLOG_ADMIN_SECRET is set.",
    ),
    422: ("A parameter is not valid", "INVALID_REQUEST", "limit: Input should be less than or equal to 200"),
    429: (
        "Too many wrong secrets; Retry-After says when to come back",
        "TOO_MANY_GUESSES",
        "Too many wrong secrets came from this address. Please wait a moment.",
    ),
    503: (
        "A neighbour is away; Retry-After says when to come back",
        "DATABASE_UNAVAILABLE",
        "The database does not answer right now. Please try again in a moment.",
    ),
    507: ("The storage disk is full", "STORAGE_FULL", "The storage disk is full."),
}


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Document the errors of a route, each with an example."""
    documented: dict[int | str, dict[str, Any]] = {}
    for status in statuses:
        documented |= like(status, *_EXAMPLES[status])
    return documented


def like(status: int, description: str, code: str, detail: str) -> dict[int | str, dict[str, Any]]:
    """Document one error of a route with an example of its own."""
    content = {"application/json": {"example": {"error": code, "detail": detail}}}
    return {status: {"model": ErrorBody, "description": description, "content": content}}


def _in_place(part: Any, named: dict[str, Any]) -> Any:
    """Put what is named where its name stands."""
    if isinstance(part, list):
        return [_in_place(each, named) for each in part]
    if not isinstance(part, dict):
        return part
    if name := part.get("$ref"):
        return _in_place({**named[name], **{key: value for key, value in part.items() if key != "$ref"}}, named)
    return {key: _in_place(value, named) for key, value in part.items()}


def json_body(model: type[BaseModel]) -> dict[str, Any]:
    """Document a small JSON body that a route reads by hand."""
    schema = model.model_json_schema(ref_template="{model}")
    # FastAPI collects the models of bodies that it reads itself; a name that only this one knows would lead nowhere.
    schema = _in_place(schema, schema.pop("$defs", {}))
    example = schema.pop("examples")[0]
    return {"requestBody": {"content": {"application/json": {"schema": schema, "example": example}}}}


_TEXT = {"type": "string"}
FORM_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {"type": "string", "format": "binary", "description": "The video"},
                        "title": {**_TEXT, "maxLength": 255, "description": "By default the file's name"},
                        "description": {**_TEXT, "maxLength": 10000},
                        "owner": {**_TEXT, "maxLength": 255, "description": "Owners take turns within a tier"},
                        "tier": {
                            **_TEXT,
                            "enum": ["viral", "creator", "hobby", "trial", "free", "bulk"],
                            "description": "Who waits for whom; by default free",
                        },
                        "is_paid": {"type": "boolean", "description": "What is not paid for waits with the free ones"},
                        "qualities": {
                            **_TEXT,
                            "description": "Such as 720p,720p-av1; none means all",
                        },
                    },
                },
                "example": {"file": "(bytes)", "title": "My holiday", "owner": "ana", "tier": "creator"},
            }
        },
    }
}
RAW_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "The file itself: `curl -T holiday.mp4 '…/api/videos?filename=holiday.mp4'`",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}
