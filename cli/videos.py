"""Commands on videos: upload, list, show, watch. All of them are HTTP."""

import asyncio
import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.progress import Progress as RichProgress

from cli.answers import Created, Progress, Video
from cli.client import ApiClient, Json
from cli.finding import called, client_settings
from cli.following import display_for, follow, line
from cli.reporting import report_lines
from cli.terminal import CliError, bytes_text, out, printable, say, seconds_text, show_table
from contracts.states import Tier, VideoStatus

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
ApiOption = Annotated[str | None, typer.Option("--api", metavar="URL", help="The API; else the one running here.")]


def upload(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Videos to upload.")],
    title: Annotated[str | None, typer.Option(help="Title; the file's name when not given.")] = None,
    description: Annotated[str | None, typer.Option(help="Description.")] = None,
    owner: Annotated[str | None, typer.Option(help="Whose it is; owners get equal shares of the workers.")] = None,
    tier: Annotated[Tier | None, typer.Option(help="Who waits for whom.")] = None,
    as_json: JsonOption = False,
    api: ApiOption = None,
) -> None:
    """Upload videos; each is transcoded as soon as a worker is free."""
    if title and len(files) > 1:
        raise CliError("One --title cannot name several files.", mend="upload them one by one, or leave the title out")
    for path in files:
        check_file(path)
    fields = {"title": title, "description": description, "owner": owner, "tier": tier.value if tier else None}

    async def send_all() -> None:
        async with ApiClient.of(client_settings(), api) as client:
            for path in files:
                created = await send(client, path, fields, quiet=as_json)
                if as_json:
                    print_json(created.model_dump())
                else:
                    say(f"{path.name}: video {created.video_id} ({created.status}); follow it: {watch_hint(created)}")

    asyncio.run(send_all())


def list_videos(
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many, newest first.")] = 20,
    status: Annotated[VideoStatus | None, typer.Option(help="Only those in this state.")] = None,
    deleted: Annotated[bool, typer.Option("--deleted", help="Only deleted ones: `restore` brings them back.")] = False,
    as_json: JsonOption = False,
    api: ApiOption = None,
) -> None:
    """List videos, newest first."""

    async def fetch() -> Json:
        async with ApiClient.of(client_settings(), api) as client:
            return await client.videos(limit=limit, status=status.value if status else None, deleted=deleted)

    page = asyncio.run(fetch())
    if as_json:
        print_json(page)
        return
    videos = [Video.model_validate(item) for item in page["items"]]
    if not videos:
        say("No deleted videos." if deleted else f"No videos yet: `{called()} upload FILE` brings one in.")
        return
    columns = ("id", "status", "length", "created", "slug", "title")
    show_table("", columns, [_row(video) for video in videos], right=("id", "length"))


def show(
    video_id: Annotated[int, typer.Argument(metavar="ID", min=1, help="The video's number.")],
    as_json: JsonOption = False,
    api: ApiOption = None,
) -> None:
    """Show one video: its state, where it plays, what was found in its source and what was decided about it."""

    async def fetch() -> tuple[str, Json, Json]:
        async with ApiClient.of(client_settings(), api) as client:
            return client.url, await client.video(video_id), await client.progress(video_id)

    url, raw, progress = asyncio.run(fetch())
    if as_json:
        print_json(raw | {"progress": progress})
        return
    video = Video.model_validate(raw)
    say(f"{printable(video.title)}  (video {video.video_id}, {video.status})", style="bold")
    for name, value in facts_of(video, url):
        say(f"  {name:<9} {value}")
    for name, value in report_lines(raw.get("report")):
        say(f"  {name:<9} {value}")
    now = Progress.model_validate(progress)
    say(f"  {'progress':<9} {line(now)}")
    _say_last_job(video, now)


def watch(
    video_id: Annotated[int, typer.Argument(metavar="ID", min=1, help="The video's number.")],
    as_json: JsonOption = False,
    api: ApiOption = None,
) -> None:
    """Follow one video to its end; exits 0 when it is ready, 1 when it, or its retranscode, failed."""

    async def look_on() -> tuple[str, Video, Progress]:
        async with ApiClient.of(client_settings(), api) as client:
            await client.video(video_id)  # an unknown one is said at once
            video = await follow(client, video_id, display_for(as_json=as_json))
            return client.url, video, await client.read_progress(video_id)

    url, video, end = asyncio.run(look_on())
    if not as_json:
        for name, value in facts_of(video, url):
            say(f"  {name:<9} {value}")
        _say_last_job(video, end)
    good = video.status == VideoStatus.READY and end.state not in ("failed", "cancelled")
    raise typer.Exit(0 if good else 1)


def _say_last_job(video: Video, progress: Progress) -> None:
    """Say how a ready video's newest job ended, if badly: what is served is not of it."""
    if video.status == VideoStatus.READY and progress.state in ("failed", "cancelled"):
        say(f"  {'last job':<9} {progress.state}: {printable(progress.last_error or 'on request')}")


def check_file(path: Path) -> None:
    """Refuse what cannot be sent before anything is opened."""
    if not path.exists():
        raise CliError(f"There is no file {path}.", mend="check the name")
    if not path.is_file():
        raise CliError(f"{path} is not a file.", mend="name a video file")
    if path.stat().st_size == 0:
        raise CliError(f"{path} is empty.", mend="name a video file")


async def send(client: ApiClient, path: Path, fields: dict[str, str | None], *, quiet: bool = False) -> Created:
    """Upload one file with a bar where somebody looks on."""
    size = await asyncio.to_thread(lambda: path.stat().st_size)
    if quiet or not out.is_terminal:
        if not quiet:
            say(f"Uploading {path.name} ({bytes_text(size)})")
        return await client.upload(path, size_bytes=size, fields=fields)
    columns = (
        TextColumn("[bold]upload"),
        BarColumn(32),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with RichProgress(*columns, console=out) as bars:
        task = bars.add_task("upload", total=size)
        return await client.upload(
            path, size_bytes=size, fields=fields, on_bytes=lambda sent: bars.update(task, completed=sent)
        )


def facts_of(video: Video, url: str) -> list[tuple[str, str]]:
    """List what a person wants to know of a video, leaving out what is not there yet."""
    stream = video.stream_url and absolute(url, video.stream_url)
    dash = video.dash_url and absolute(url, video.dash_url)
    error = f"{printable(video.error_message or '')} ({video.error_code})" if video.error_code else None
    length = seconds_text(video.duration) if video.duration else None
    missing = "; ".join(f"{each.name}: {printable(each.sentence)}" for each in video.missing) or None
    facts = {"length": length, "slug": video.slug, "HLS": stream, "DASH": dash, "error": error, "missing": missing}
    facts |= {
        # What a viewer can choose from; the names are those of whoever made the file.
        "sounds": printable(", ".join(map(str, video.audio))),
        "subtitles": printable(", ".join(map(str, video.subtitles))),
    }
    return [(name, value) for name, value in facts.items() if value]


def absolute(url: str, address: str) -> str:
    return address if address.startswith("http") else f"{url}{address}"


def watch_hint(created: Created) -> str:
    return f"{called()} watch {created.video_id}"


def print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=None if not out.is_terminal else 2, default=str))


def _row(video: Video) -> tuple[object, ...]:
    created = video.created_at.strftime("%Y-%m-%d %H:%M") if video.created_at else "–"
    return video.video_id, video.status, seconds_text(video.duration), created, video.slug, video.title
