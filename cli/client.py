"""HTTP to the API: the only way the command learns about videos."""

import asyncio
import getpass
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx

from cli.answers import Created, Progress, Video
from cli.terminal import CliError, printable
from runtime.home import read_run
from runtime.settings import Settings

_CHUNK_BYTES = 1 << 20
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
# The last byte of a large upload is answered only when the file is flushed and its rows are written.
_UPLOAD_TIMEOUT = httpx.Timeout(10.0, read=600.0, write=120.0)

_AWAY = frozenset({502, 503, 504})  # a neighbour of the API is away; or the API, says the proxy before it

Json = dict[str, Any]


def api_address(settings: Settings, given: str | None) -> str:
    """Find the API: what was named, else what the running service wrote down."""
    named = given or settings.api_url
    if named:
        if not named.startswith(("http://", "https://")):
            raise CliError(f"{named!r} is not an address.", mend="write it like --api http://127.0.0.1:9000")
        return named.rstrip("/")
    run = read_run(settings.home)
    if run is None or not run.api_url:
        raise CliError(
            f"No VLog is running with the home {settings.home}.",
            mend="start it with `vlog up`, or name one with --api URL",
        )
    return run.api_url.rstrip("/")


class ApiClient:
    """The routes the command uses; every failure becomes a sentence."""

    def __init__(self, url: str, *, admin_secret: str | None = None) -> None:
        self.url = url
        self._http = httpx.AsyncClient(
            base_url=url,
            headers={"X-Admin-Secret": admin_secret} if admin_secret else {},
            timeout=httpx.Timeout(30.0, connect=5.0),
            # A proxy for the world outside cannot reach a service on this machine.
            trust_env=httpx.URL(url).host not in _LOOPBACK,
        )

    @classmethod
    def of(cls, settings: Settings, given: str | None = None) -> Self:
        secret = settings.admin_secret
        return cls(api_address(settings, given), admin_secret=secret.get_secret_value() if secret else None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def upload(
        self,
        path: Path,
        *,
        size_bytes: int,
        fields: Mapping[str, str | None],
        on_bytes: Callable[[int], None] = lambda _: None,
    ) -> Created:
        """Send a file as it is read from disk; `on_bytes` hears how much is gone so far."""
        answer = await self._ask(
            "PUT",
            "/api/videos",
            params={"filename": path.name} | {key: value for key, value in fields.items() if value},
            content=_chunks(path, on_bytes),
            headers={"Content-Length": str(size_bytes), "Content-Type": "application/octet-stream"},
            timeout=_UPLOAD_TIMEOUT,
        )
        return Created.model_validate(answer)

    async def videos(
        self, *, limit: int, status: str | None = None, cursor: str | None = None, deleted: bool = False
    ) -> Json:
        wanted = {"limit": str(limit), "status": status, "cursor": cursor, "deleted": "true" if deleted else None}
        return await self._ask("GET", "/api/videos", params={k: v for k, v in wanted.items() if v})

    async def video(self, video_id: int) -> Json:
        return await self._ask("GET", f"/api/videos/{video_id}")

    async def read_video(self, video_id: int) -> Video:
        return Video.model_validate(await self.video(video_id))

    async def progress(self, video_id: int) -> Json:
        return await self._ask("GET", f"/api/videos/{video_id}/progress")

    async def read_progress(self, video_id: int) -> Progress:
        return Progress.model_validate(await self.progress(video_id))

    async def command(self, method: str, path: str, body: Json | None = None, *, secret: str | None = None) -> Json:
        """Ask for something to be done, saying who asks."""
        how: dict[str, Any] = {} if body is None else {"json": body}
        headers = {"X-Actor": _who()} | ({"X-Admin-Secret": secret} if secret else {})
        return await self._ask(method, path, headers=headers, **how)

    async def workers(self, **wanted: str | None) -> list[Json]:
        """List workers, page after page: there are as many as machines, not as videos."""
        found: list[Json] = []
        cursor: str | None = ""
        while cursor is not None:
            params = {name: value for name, value in {**wanted, "limit": "200", "cursor": cursor}.items() if value}
            page = await self._ask("GET", "/api/workers", params=params)
            found += page["items"]
            cursor = page["next_cursor"]
        return found

    async def worker(self, worker_id: str) -> Json:
        return await self._ask("GET", f"/api/workers/{quote(worker_id, safe='')}")

    async def _ask(self, method: str, path: str, **how: Any) -> Json:
        try:
            answer = await self._http.request(method, path, **how)
        except httpx.TransportError as error:
            raise Unreachable(self.url, error) from error
        if answer.is_success:
            body: Json = answer.json()
            return body
        raise _refusal(answer)


def _who() -> str:
    """Name the person at this machine, for the job's events."""
    try:
        return f"vlog:{getpass.getuser()}".encode("ascii", "replace").decode()
    except (OSError, KeyError):  # a container may run as a number that has no name
        return "vlog"


class Away(CliError):
    """No answer right now, from the API or from something behind it; worth waiting for."""


class Unreachable(Away):
    """The API does not answer; it may be restarting."""

    def __init__(self, url: str, error: Exception) -> None:
        slow = isinstance(error, httpx.TimeoutException)
        super().__init__(
            f"VLog at {url} {'took too long to answer' if slow else 'does not answer'}.",
            mend="start it with `vlog up`, or see `vlog doctor`",
        )


def _refusal(answer: httpx.Response) -> CliError:
    kind = Away if answer.status_code in _AWAY else CliError
    try:
        body = answer.json()
        code, detail = str(body["error"]), body["detail"]
    except (ValueError, KeyError, TypeError):
        return kind(f"The API answered {answer.status_code} to {answer.request.method} {answer.request.url.path}.")
    sentence = detail if isinstance(detail, str) else "The request was refused."
    mend = "set VLOG_ADMIN_SECRET to the service's secret" if answer.status_code in (401, 403) else ""
    return kind(f"{printable(sentence)} ({code})", mend=mend)


async def _chunks(path: Path, on_bytes: Callable[[int], None]) -> AsyncIterator[bytes]:
    sent = 0
    with path.open("rb") as file:
        while chunk := await asyncio.to_thread(file.read, _CHUNK_BYTES):
            yield chunk
            sent += len(chunk)
            on_bytes(sent)
