"""`python -m workers.mirror rebuild [JOB]`: write a job's rows, or every job's, anew from Temporal and storage."""

import argparse
import asyncio
from collections.abc import Callable
from typing import Any

from temporalio.service import RPCError

from activities.history import HistoryReader, step_types
from activities.rebuilding import MirrorRebuild
from contracts.errors import StorageUnavailable
from contracts.queues import Pool
from media.tools import Toolbox
from mirror.claims import WorkerIdentity
from mirror.rebuilding import AnotherJobRuns
from mirror.recorder import StepRecorder
from mirror.sessions import Database, SchemaNotReady
from runtime.exiting import exit_now
from runtime.joining import NotRunning, resolve
from runtime.logs import configure_logs
from runtime.names import SettingsError
from runtime.settings import Settings, load_settings
from runtime.temporal import connect
from storage.opening import open_store
from storage.store import Store
from workers.build import Parts, steps

SCHEMA_S = 10.0


def reader_types(settings: Settings, store: Store, database: Database) -> list[Callable[..., Any]]:
    """Name every step that workers serve; only their types are read, nothing is run."""
    parts = Parts(settings, store, database, Toolbox(()), StepRecorder(database, WorkerIdentity("rebuild")))
    return [step for pool in Pool for step in steps(pool, parts)]


async def rebuild(settings: Settings, job_id: int | None) -> int:
    """Rebuild, say a line per job, and give the number of those that could not be."""
    joined = resolve(settings)
    database, store = Database(joined.database_url), open_store(joined.storage_url, settings, is_new=lambda: False)
    try:
        await database.wait_for_schema(SCHEMA_S)
        client = await connect(joined)
        types = step_types(reader_types(settings, store, database))
        rebuilding = MirrorRebuild(database, client, store, HistoryReader(client, types))
        if job_id is None:
            names = await rebuilding.all_workflows()
        else:
            found = await rebuilding.workflow_of(job_id)
            names = [found] if found else []
        if not names:
            print("Temporal knows no job." if job_id is None else f"Temporal does not know job {job_id}.")
            return 0 if job_id is None else 1
        failed = 0
        for name in names:
            try:
                said = "rebuilt" if await rebuilding.rebuild(name) else "unknown to Temporal"
            except AnotherJobRuns as error:
                said, failed = str(error), failed + 1
            print(f"{name}: {said}", flush=True)
        return failed
    finally:
        await database.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="vlog mirror")
    commands = parser.add_subparsers(dest="command", required=True)
    rebuilding = commands.add_parser("rebuild", help="write rows anew from Temporal")
    rebuilding.add_argument("job", type=int, nargs="?", help="one job; all without it")
    arguments = parser.parse_args()
    try:
        settings = load_settings()
        configure_logs(settings, "mirror")
        failed = asyncio.run(rebuild(settings, arguments.job))
    except (NotRunning, SchemaNotReady, SettingsError, StorageUnavailable) as error:
        raise SystemExit(str(error)) from None
    except (RPCError, RuntimeError) as error:  # RuntimeError: the SDK's word for "cannot connect"
        raise SystemExit(f"Temporal does not answer: {error}") from None
    exit_now(1 if failed else 0)


if __name__ == "__main__":
    main()
