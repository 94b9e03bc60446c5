"""`vlog up`: the whole service in one terminal, and what `demo` shares with it."""

import asyncio
import signal
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Annotated, Any, TypeVar

import typer

from cli.finding import command_for
from cli.terminal import CliError, out, say
from runtime.home import read_run
from runtime.logs import configure_logs
from runtime.settings import Settings, load_settings
from runtime.stack import Stack

T = TypeVar("T")


class Interrupted(Exception):
    """Somebody pressed Ctrl-C, or the system asks us to go."""


def up(
    workers: Annotated[int, typer.Option(min=0, max=64, help="How many worker processes; 0: they run elsewhere.")] = 1,
) -> None:
    """Run everything in one terminal: Postgres, Temporal, the API and workers. Ctrl-C stops it."""
    settings = load_settings()
    configure_logs(settings, "up")
    raise typer.Exit(asyncio.run(_up(settings, workers)))


async def _up(settings: Settings, workers: int) -> int:
    async with told_to_stop() as told:
        try:
            async with started(settings, workers, told) as stack:
                for line in whereabouts(settings):
                    say(line)
                say("Ctrl-C stops it.", style="dim")
                await unless(told, stack.wait())
        except Interrupted:
            say("Stopped.")
    return 0


@asynccontextmanager
async def started(settings: Settings, workers: int, told: asyncio.Event) -> AsyncIterator[Stack]:
    """Start the service and stop it afterwards, whatever happens in between."""
    stack = Stack(settings, workers=workers)
    try:
        with out.status("Starting Postgres, Temporal, the API and the workers …"):
            await unless(told, stack.start())
        yield stack
    finally:
        if told.is_set():
            say("Stopping: steps under way get a few seconds to finish …", style="dim")
        await stack.stop()


@asynccontextmanager
async def told_to_stop() -> AsyncIterator[asyncio.Event]:
    """Turn Ctrl-C and SIGTERM into an event, so that stopping runs in order."""
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in signals:
        loop.add_signal_handler(number, told.set)
    try:
        yield told
    finally:
        for number in signals:
            loop.remove_signal_handler(number)


async def unless(told: asyncio.Event, work: Coroutine[Any, Any, T]) -> T:
    """Do the work, but drop it the moment we are told to stop."""
    doing = asyncio.ensure_future(work)
    stop = asyncio.ensure_future(told.wait())
    try:
        await asyncio.wait({doing, stop}, return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            raise Interrupted
        return doing.result()
    finally:
        for task in (doing, stop):
            task.cancel()
        await asyncio.gather(doing, stop, return_exceptions=True)


def whereabouts(settings: Settings) -> list[str]:
    """Say where the running service can be found."""
    run = read_run(settings.home)
    if run is None:
        raise CliError("The service started but left no run.json.", mend=f"see the logs in {settings.home / 'logs'}")
    return [
        f"  API          {run.api_url}",
        *([f"  Temporal UI  {run.temporal_ui_url}"] if run.temporal_ui_url else []),
        f"  home         {settings.home}",
        f"  upload with  {command_for(settings, 'upload FILE')}",
    ]
