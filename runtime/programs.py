"""Our own processes under `up`: the migration, the API, the workers."""

import os
import socket
import sys
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from runtime.home import RunFile
from runtime.processes import dying_with_us
from runtime.settings import Settings, child_environment
from runtime.supervisor import Program

DRAIN_S = 5.0  # Ctrl-C in a terminal: a person is waiting, and what is cut short resumes with the next start


def module(name: str) -> tuple[str, ...]:
    """Run one of our modules. -P, or a folder named `api` where a person stands would be taken for ours."""
    return (sys.executable, "-P", "-m", name)


MIGRATION = module("workers.migrate")


def own_programs(settings: Settings, run: RunFile, workers: int) -> list[Program]:
    """Describe the API and the workers; they find everything else through run.json."""
    return [_api(settings, run), *(_worker(settings, number, workers) for number in range(1, workers + 1))]


def own_environment(settings: Settings, **explicit: str) -> dict[str, str]:
    """Give one of our children its settings; whoever supervises it keeps its output."""
    environment = child_environment(settings, VLOG_LOG_FILES="false", **explicit)
    checkout = Path(__file__).parents[1]
    if (checkout / "pyproject.toml").exists():  # not installed, or editable: -P hides the folder we run from
        paths = (str(checkout), environment.get("PYTHONPATH", ""))
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    return environment


def _api(settings: Settings, run: RunFile) -> Program:
    async def answers() -> bool:
        try:
            async with httpx.AsyncClient(trust_env=False, timeout=2) as client:
                return (await client.get(f"{run.api_url}/health")).status_code == 200
        except httpx.HTTPError:
            return False

    return Program(
        name="api",
        argv=dying_with_us(module("api")),
        # Named, so that it comes back to the same port after a crash.
        environment=own_environment(settings, VLOG_PORT=str(urlsplit(run.api_url).port)),
        ready=answers,
        stop_within_s=DRAIN_S + 3,
    )


def _worker(settings: Settings, number: int, workers: int) -> Program:
    drain_s = min(settings.drain_seconds, DRAIN_S)
    name = settings.worker_name or socket.gethostname()
    return Program(
        name=f"worker-{number}",
        argv=dying_with_us(module("workers")),
        environment=own_environment(
            settings,
            VLOG_DRAIN_SECONDS=f"{drain_s:g}",
            # Cut, so that it is not too long with its number.
            VLOG_WORKER_NAME=name if workers == 1 and settings.worker_name else f"{name[:90]}-{number}",
            VLOG_MACHINE_WORKERS=str(max(workers, settings.machine_workers)),
        ),
        stop_within_s=drain_s + 3,
    )
