"""`python -m workers --pool cpu,io`: one worker process."""

import argparse
import asyncio
from collections.abc import Sequence

import structlog

from contracts.errors import VlogError
from contracts.queues import Pool
from mirror.sessions import SchemaNotReady
from runtime.exiting import exit_now
from runtime.joining import NotRunning
from runtime.logs import configure_logs
from runtime.names import SettingsError
from runtime.settings import load_settings
from workers.main import serve

log = structlog.get_logger("worker")

DEFAULT_POOLS = "orchestrate,io,cpu"


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
        pools = pools_from(arguments.pool or [DEFAULT_POOLS])
    except ValueError as error:
        parser.error(str(error))
    try:
        settings = load_settings()
    except SettingsError as error:
        raise SystemExit(str(error)) from None
    configure_logs(settings, "worker")
    code = 0
    try:
        asyncio.run(serve(settings, pools))
    except (NotRunning, SchemaNotReady, SettingsError, VlogError) as error:
        log.error("not_started", reason=str(error))
        code = 1
    except Exception:
        log.exception("the worker stopped")
        code = 1
    exit_now(code)


if __name__ == "__main__":
    main()
