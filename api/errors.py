"""From what went wrong to HTTP, once. Every error body is `{"error": CODE, "detail": sentence}`.

404 unknown, 409 wrong state, 503 a neighbour is away; 422 belongs to request validation only.
"""

import asyncpg
import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from temporalio.service import RPCError

from contracts.errors import FailureKind, ObjectMissing, ScratchFull, VlogError
from mirror.commands import Refused

log = structlog.get_logger(__name__)

RETRY_AFTER_S = 5

_PLAIN = {
    400: ("BAD_REQUEST", "The request could not be read."),
    401: ("UNAUTHORIZED", "This needs credentials."),
    403: ("FORBIDDEN", "This is not allowed."),
    404: ("NOT_FOUND", "There is nothing at this address."),
    405: ("METHOD_NOT_ALLOWED", "This address does not take that method."),
    413: ("UPLOAD_TOO_LARGE", "The request is too large."),
}


class ApiError(Exception):
    """An answer that is not a success, with a code for programs and a sentence for people."""

    def __init__(self, status: int, code: str, detail: str, *, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail, self.headers = status, code, detail, headers or {}


def video_not_found(what: int | str) -> ApiError:
    return ApiError(404, "VIDEO_NOT_FOUND", f"There is no video {what}.")


def job_not_found(job_id: int) -> ApiError:
    return ApiError(404, "JOB_NOT_FOUND", f"There is no job {job_id}.")


def away(code: str, detail: str) -> ApiError:
    return ApiError(503, code, detail, headers={"Retry-After": str(RETRY_AFTER_S)})


def database_away() -> ApiError:
    return away("DATABASE_UNAVAILABLE", "The database does not answer right now. Please try again in a moment.")


def temporal_away() -> ApiError:
    return away("TEMPORAL_UNAVAILABLE", "Temporal does not answer right now. Please try again in a moment.")


def is_database_away(error: BaseException) -> bool:
    """Tell a lost connection from a bad statement: only the first is worth trying again."""
    if isinstance(error, DBAPIError):
        # SQLSTATE class 08 is a lost connection, 53 no room for one, 57P a server going down or coming up.
        state = str(getattr(error.orig, "sqlstate", None) or "")
        return error.connection_invalidated or state.startswith(("08", "53", "57P")) or is_database_away_driver(error)
    if isinstance(error, asyncpg.PostgresError):
        return (error.sqlstate or "").startswith(("08", "28", "3D", "53", "57P"))
    return isinstance(error, PoolTimeout | asyncpg.InterfaceError | OSError)


def is_database_away_driver(error: DBAPIError) -> bool:
    cause = error.orig.__cause__ if error.orig is not None else None
    return isinstance(cause, asyncpg.InterfaceError | OSError)


def body(code: str, detail: str) -> dict[str, str]:
    return {"error": code, "detail": detail}


def answer(error: ApiError) -> JSONResponse:
    # True for this moment only. Caches may keep a 404 that says nothing about it for as long as they like, and who asks
    # for a playlist too early would hide it from all who come later.
    headers = {"Cache-Control": "no-store"} | error.headers
    return JSONResponse(body(error.code, error.detail), status_code=error.status, headers=headers)


async def _on_api_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ApiError)
    return answer(error)


async def _on_refused(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Refused)
    return answer(ApiError(409, error.code, error.sentence))


async def _on_http_exception(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    code, detail = _PLAIN.get(error.status_code, ("HTTP_ERROR", "The request was refused."))
    headers = dict(error.headers) if error.headers else {}
    return answer(ApiError(error.status_code, code, detail, headers=headers))


async def _on_validation(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0] if error.errors() else {"loc": (), "msg": "The request is not valid."}
    where = ".".join(str(part) for part in first["loc"] if part not in ("query", "path", "body", "header"))
    return answer(ApiError(422, "INVALID_REQUEST", f"{where}: {first['msg']}" if where else str(first["msg"])))


async def _on_vlog_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, VlogError)
    if isinstance(error, ObjectMissing):
        return answer(ApiError(404, error.code, error.sentence))
    if isinstance(error, ScratchFull):
        return answer(ApiError(507, "STORAGE_FULL", error.sentence, headers={"Retry-After": str(RETRY_AFTER_S)}))
    if error.kind is FailureKind.FATAL:
        return answer(ApiError(400, error.code, error.sentence))
    return answer(away(error.code, error.sentence))


async def _on_database(request: Request, error: Exception) -> JSONResponse:
    if is_database_away(error):
        log.warning("database_unavailable", path=request.url.path, error=type(error).__name__)
        return answer(database_away())
    return await _on_anything(request, error)


async def _on_temporal(request: Request, error: Exception) -> JSONResponse:
    log.warning("temporal_unavailable", path=request.url.path, error=str(error))
    return answer(temporal_away())


async def _on_disconnect(request: Request, error: Exception) -> JSONResponse:
    # Nobody is there to read it; the status only shows in the access log.
    return answer(ApiError(400, "UPLOAD_INTERRUPTED", "The upload ended before it was complete."))


async def _on_anything(request: Request, error: Exception) -> JSONResponse:
    log.error("unexpected_error", path=request.url.path, exc_info=error)
    return answer(ApiError(500, "INTERNAL_ERROR", "Something went wrong here. It has been written to the log."))


def install(app: FastAPI) -> None:
    """Give every failure of every route its one shape."""
    app.add_exception_handler(ApiError, _on_api_error)
    app.add_exception_handler(Refused, _on_refused)
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(RequestValidationError, _on_validation)
    app.add_exception_handler(VlogError, _on_vlog_error)
    for kind in (SQLAlchemyError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
        app.add_exception_handler(kind, _on_database)
    app.add_exception_handler(RPCError, _on_temporal)
    app.add_exception_handler(ClientDisconnect, _on_disconnect)
    app.add_exception_handler(Exception, _on_anything)
