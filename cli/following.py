"""Follow one video until it is ready or has failed, on a terminal, in a log, or as JSON lines."""

import asyncio
import json
import time
from types import TracebackType
from typing import Protocol, Self

import typer
from rich.progress import BarColumn, TaskID, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress

from cli.answers import Progress, QualityProgress, Video
from cli.client import ApiClient, Away, Json
from cli.terminal import out, say, seconds_text

_POLL_SECONDS = 0.5
_PATIENCE_SECONDS = 60.0  # an API or a Postgres that restarts is back long before


class Display(Protocol):
    """Something that shows progress; entered before the first, left after the last."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def show(self, raw: Json, progress: Progress) -> None: ...


async def follow(api: ApiClient, video_id: int, display: Display) -> Video:
    """Show every change until the end; an API, or a Postgres behind it, that is away for a moment is waited for."""
    away_since: float | None = None
    with display:
        while True:
            try:
                raw = await api.progress(video_id)
                progress = Progress.model_validate(raw)
                display.show(raw, progress)
                if progress.ended:
                    return await api.read_video(video_id)
                away_since = None
            except Away:
                away_since = away_since or time.monotonic()
                if time.monotonic() - away_since > _PATIENCE_SECONDS:
                    raise
            await asyncio.sleep(_POLL_SECONDS)


def display_for(*, as_json: bool) -> Display:
    if as_json:
        return JsonLines()
    return Bars() if out.is_terminal else Lines()


class _Plain:
    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class Lines(_Plain):
    """A line whenever something changed; a percent alone is news only every ten."""

    def __init__(self) -> None:
        self._last: tuple[object, ...] | None = None
        self._began = time.monotonic()

    def show(self, raw: Json, progress: Progress) -> None:
        now = _essence(progress)
        if now == self._last:
            return
        self._last = now
        say(f"{seconds_text(time.monotonic() - self._began):>6}  {line(progress)}")


class JsonLines(_Plain):
    """The API's own answer, one object per line, whenever it changed."""

    def __init__(self) -> None:
        self._last: Json | None = None

    def show(self, raw: Json, progress: Progress) -> None:
        # The estimate shrinks by itself; that is not a change.
        now = {key: value for key, value in raw.items() if key != "eta_seconds"}
        if now != self._last:
            self._last = now
            typer.echo(json.dumps(raw))


class Bars:
    """One bar for the video with the step it is in, and one per quality."""

    def __init__(self) -> None:
        self._bars = RichProgress(
            TextColumn("{task.description}", style="bold"),
            BarColumn(bar_width=32),
            TaskProgressColumn(),
            TextColumn("{task.fields[note]}", style="dim"),
            TimeElapsedColumn(),
            console=out,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._bars.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.__exit__(kind, error, trace)

    def show(self, raw: Json, progress: Progress) -> None:
        left = f", {seconds_text(progress.eta_seconds)} left" if progress.eta_seconds and not progress.ended else ""
        self._set("video", progress.percent, _video_note(progress) + left)
        for quality in progress.qualities:
            if quality.status != "skipped":
                self._set(quality.quality, quality.percent, _quality_note(quality))

    def _set(self, name: str, percent: float, note: str) -> None:
        if name not in self._tasks:
            self._tasks[name] = self._bars.add_task(name, total=100, note=note)
        self._bars.update(self._tasks[name], completed=percent, note=note)


def line(progress: Progress) -> str:
    """Put all of it on one line of a log."""
    qualities = " · ".join(
        f"{q.quality} {_quality_note(q)}".rstrip() for q in progress.qualities if q.status != "skipped"
    )
    left = f"  {seconds_text(progress.eta_seconds)} left" if progress.eta_seconds and not progress.ended else ""
    return f"{_video_note(progress):<15} {progress.percent:3.0f} %  {qualities}{left}".rstrip()


def _video_note(progress: Progress) -> str:
    if progress.ended:
        return progress.status
    note = "paused" if progress.state == "paused" else progress.step or "waiting"
    if (progress.attempt or 1) > 1:
        note += f", try {progress.attempt} of {progress.max_attempts}"
    return note


def _quality_note(quality: QualityProgress) -> str:
    if quality.status == "completed":
        return "done"
    if quality.status in ("failed", "pending"):
        return quality.status
    if quality.segments_total:
        return f"{quality.segments_completed or 0}/{quality.segments_total}"
    return ""


def _essence(progress: Progress) -> tuple[object, ...]:
    qualities = tuple((q.quality, q.status, q.segments_completed) for q in progress.qualities)
    return (
        progress.status,
        progress.state == "paused",
        progress.step,
        progress.attempt,
        int(progress.percent // 10),
        qualities,
    )
