"""Commands that become another process: one per part of a real deployment, and the checks of `doctor`."""

import os
import sys
from typing import Annotated, NoReturn

import typer

from cli.finding import client_settings
from cli.terminal import CliError
from contracts.queues import Pool
from runtime.settings import load_settings

_API, _KEY = "VLOG_WORKER_API_URL", "VLOG_WORKER_API_KEY"


def api() -> None:
    """Run the HTTP API, and nothing else."""
    become("api")


def worker(
    pool: Annotated[
        list[str] | None,
        typer.Option(
            metavar="POOLS",
            help="What it serves, with commas or given again: " + ", ".join(Pool) + ". "
            "By default orchestrate,io,cpu; of an API elsewhere cpu.",
        ),
    ] = None,
    api: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Work for this API, and reach nothing but it. Also VLOG_WORKER_API_URL."),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="What `vlog workers register` printed there. Also VLOG_WORKER_API_KEY."),
    ] = None,
) -> None:
    """Run one worker process."""
    # Not as arguments: whoever lists processes would read the key.
    os.environ.update({name: text for name, text in ((_API, api), (_KEY, key)) if text})
    settings = load_settings()
    if settings.worker_api_url and not settings.worker_api_key:
        raise CliError(
            "A worker of an API elsewhere needs a key.", mend="there, `vlog workers register NAME` prints one"
        )
    if key and not settings.worker_api_url:  # it would join a service here, and nobody would ask for the key
        raise CliError("A key is for an API elsewhere, and none is named.", mend="--api URL names it")
    become("workers", *(["--pool", ",".join(parse_pools(",".join(pool)))] if pool else []))


def migrate() -> None:
    """Bring the database's schema up to date, and stop."""
    become("workers.migrate")


mirror = typer.Typer(help="The picture in Postgres of what Temporal and storage know.", no_args_is_help=True)


@mirror.command("rebuild")
def rebuild_mirror(
    job: Annotated[int | None, typer.Argument(help="One job, by its number; without it, all of them.")] = None,
) -> None:
    """Write the rows of a job, or of every job, anew from Temporal's histories."""
    become("workers.mirror", "rebuild", *([str(job)] if job is not None else []))


def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False) -> None:
    """Check ffmpeg, Postgres, Temporal, storage and disk; say how to mend what is missing."""
    settings = client_settings()
    home = [] if settings.home == load_settings().home else ["--home", str(settings.home)]
    become("workers.doctor", *(["--json"] if as_json else []), *home)


def parse_pools(text: str) -> list[Pool]:
    """Read `cpu,io`; a pool nobody knows is said at once, before a worker waits for work that never comes."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in set(Pool)]
    if unknown or not names:
        raise CliError(
            f"There is no pool {unknown[0]!r}." if unknown else "A worker needs a pool.",
            mend="choose from " + ", ".join(Pool),
        )
    return list(dict.fromkeys(Pool(name) for name in names))


def become(module: str, *arguments: str) -> NoReturn:
    """Turn into `python -m module`: signals and exit code are then its own.

    It joins the service that other commands talk to: standing in a checkout, the one that `make up` started there.
    """
    settings = client_settings()  # a mistyped setting is one line here rather than a traceback there
    home = load_settings().home if settings.worker_api_url else settings.home  # one that joins nobody has its own
    sys.stdout.flush()
    sys.stderr.flush()
    # -P: a folder called `api` where the person happens to stand must not be taken for ours.
    argv = [sys.executable, "-P", "-m", module, *arguments]
    os.execve(sys.executable, argv, os.environ | {"VLOG_HOME": str(home)})
