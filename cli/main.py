"""`vlog`: the commands, and the one place where an error becomes a line for a person."""

import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer

from cli import commands, processes, service, videos, workers
from cli.demo import demo
from cli.terminal import CliError, complain
from contracts.errors import VlogError
from runtime.home import AlreadyRunning
from runtime.joining import NotRunning
from runtime.locate import ServerMissing
from runtime.names import SettingsError
from runtime.one_shot import CommandFailed
from runtime.ports import PortTaken
from runtime.settings import load_settings
from runtime.supervisor import GaveUp

app = typer.Typer(
    name="vlog",
    help="Self-hosted, durable video transcoding.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("up", rich_help_panel="Run")(service.up)
app.command("demo", rich_help_panel="Run")(demo)
app.command("upload", rich_help_panel="Videos")(videos.upload)
app.command("list", rich_help_panel="Videos")(videos.list_videos)
app.command("show", rich_help_panel="Videos")(videos.show)
app.command("watch", rich_help_panel="Videos")(videos.watch)
for command in (
    commands.cancel,
    commands.pause,
    commands.resume,
    commands.priority,
    commands.retry,
    commands.retranscode,
    commands.delete,
    commands.restore,
):
    app.command(command.__name__, rich_help_panel="Commands on videos")(command)
app.add_typer(workers.app, name="workers", rich_help_panel="Workers")
app.command("doctor", rich_help_panel="Run")(processes.doctor)
app.command("api", rich_help_panel="One process each, for real deployments")(processes.api)
app.command("worker", rich_help_panel="One process each, for real deployments")(processes.worker)
app.command("migrate", rich_help_panel="One process each, for real deployments")(processes.migrate)
app.add_typer(processes.mirror, name="mirror", rich_help_panel="One process each, for real deployments")


def _print_version(wanted: bool) -> None:
    if wanted:
        try:
            number = version("vlog")
        except PackageNotFoundError:
            number = "(not installed)"
        typer.echo(f"vlog {number}")
        raise typer.Exit


@app.callback()
def _root(
    wanted: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command; a person sees a line, never a traceback, unless VLOG_LOG_LEVEL is debug."""
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(0)  # `vlog list | head`
    except Exception as error:
        if _debugging():
            raise
        complain(explained(error))
        sys.exit(2 if isinstance(error, SettingsError) else 1)


def explained(error: Exception) -> CliError:
    """Find the sentence for any failure."""
    match error:
        case CliError():
            return error
        case SettingsError():
            return CliError(" ".join(str(error).splitlines()), mend="docs/configuration.md lists the settings")
        case NotRunning() | AlreadyRunning() | ServerMissing():
            return CliError(str(error))
        case PortTaken():
            return CliError(str(error), mend="set VLOG_PORT to a free one, or leave it unset")
        case GaveUp() | CommandFailed():
            sentence, _, tail = str(error).partition("\n")
            return CliError(sentence, tail=tail)
        case VlogError():
            return CliError(f"{error.sentence} ({error.code})")
        case _:
            return CliError(
                f"{type(error).__name__}: {error}" if str(error) else type(error).__name__,
                mend="VLOG_LOG_LEVEL=debug shows where it came from",
            )


def _debugging() -> bool:
    try:
        return load_settings().log_level == "debug"
    except SettingsError:
        return False
