"""`python -m workers --pool cpu,io`: one worker process, local or, with VLOG_WORKER_API_URL, remote."""

import argparse
import asyncio
from collections.abc import Sequence

import structlog

from contracts.errors import VlogError
from contracts.gateway import REMOTE_POOLS
from contracts.queues import DEFAULT_POOLS, Pool
from mirror.sessions import SchemaNotReady
from runtime.exiting import exit_now
from runtime.joining import NotRunning
from runtime.logs import configure_logs
from runtime.names import SettingsError
from runtime.settings import load_settings
from runtime.settling import settle
from workers.main import serve
from workers.remote import KeyRefused
from workers.remote_serving import serve_remote

log = structlog.get_logger("worker")


def pools_from(texts: Sequence[str]) -> tuple[Pool, ...]:
    """Read `cpu,io`, said once or several times."""
    return tuple(dict.fromkeys(Pool(name.strip()) for text in texts for name in text.split(",") if name.strip()))


def main() -> None:
    parser = argparse.ArgumentParser(prog="vlog worker")
    parser.add_argument(
        "--pool",
        action="append",
        help="what to serve, with commas or given several times: " + ",".join(pool.value for pool in Pool),
    )
    arguments = parser.parse_args()
    try:
        settings = load_settings()
    except SettingsError as error:
        raise SystemExit(str(error)) from None
    remote = settings.worker_api_url is not None
    try:
        pools = pools_from(arguments.pool or (REMOTE_POOLS[:1] if remote else DEFAULT_POOLS))
    except ValueError as error:
        parser.error(str(error))
    configure_logs(settings, "worker")
    settle()
    code = 0
    try:
        asyncio.run(serve_remote(settings, pools) if remote else serve(settings, pools))
    except KeyRefused as error:  # at its start, or years later
        log.error("shut_out", reason=str(error))
        code = 1
    except (NotRunning, SchemaNotReady, SettingsError, VlogError) as error:
        log.error("not_started", reason=str(error))
        code = 1
    except Exception:
        log.exception("the worker stopped")
        code = 1
    exit_now(code)


if __name__ == "__main__":
    main()
