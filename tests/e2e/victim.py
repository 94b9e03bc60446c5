"""A second worker beside the service's own, holding a span that a test may do with as it likes."""

import contextlib
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.service import ROOT, Service
from tests.support.eventually import eventually

VICTIM = "victim"


@dataclass
class Held:
    """A video whose one span the victim holds; its first segment is stored."""

    process: subprocess.Popen[bytes]
    job_id: int
    video_id: int
    slug: str
    step_key: str


@asynccontextmanager
async def encoding_victim(service: Service, source: Path, title: str) -> AsyncIterator[Held]:
    environment = service.environment | {"VLOG_WORKER_NAME": VICTIM, "VLOG_LOG_FILES": "false"}
    with (service.home.parent / "victim.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "workers", "--pool", "cpu"], cwd=ROOT, env=environment, stdout=log, stderr=log
        )
    try:
        await eventually(lambda: _registered(service), within=90)
        created = await service.upload(source, title=title)
        found: list[str] = []

        async def begun() -> bool:
            rows = await service.query(
                "SELECT step_key, first_segment FROM job_steps WHERE job_id = $1 AND step = 'transcode'"
                " AND worker_name = $2 AND outcome = 'running'",
                created["job_id"],
                VICTIM,
            )
            folder = service.storage / "videos" / created["slug"] / "r1" / "180p"
            found.extend(r["step_key"] for r in rows if (folder / f"seg_{r['first_segment']:05d}.m4s").exists())
            return bool(found)

        await eventually(begun, within=90, every=0.1)
        yield Held(process, created["job_id"], created["video_id"], created["slug"], found[0])
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGCONT)
            process.kill()
        process.wait(30)


async def _registered(service: Service) -> bool:
    rows = await service.query(
        "SELECT 1 FROM workers WHERE worker_name = $1 AND status IN ('active', 'idle')"
        " AND last_heartbeat > now() - interval '5 seconds'",
        VICTIM,
    )
    return bool(rows)


async def attempts(service: Service, held: Held) -> list[Any]:
    """Read both attempts; how a step ended may be told a moment after its job's own end."""
    rows: list[Any] = []

    async def told() -> bool:
        rows[:] = await service.query(
            "SELECT generation, attempt, tries, outcome, error_code, worker_name, started_at, finished_at"
            " FROM job_steps WHERE job_id = $1 AND step_key = $2 ORDER BY generation, attempt",
            held.job_id,
            held.step_key,
        )
        return len(rows) >= 2 and all(row["finished_at"] for row in rows)

    await eventually(told, within=20)
    return rows
