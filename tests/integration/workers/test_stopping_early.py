"""A worker that is told to stop before it has begun: nobody needs to kill it."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.integration.api.running import NOWHERE
from tests.support.eventually import eventually

ROOT = Path(__file__).parents[3]


async def test_a_worker_that_waits_for_temporal_stops_when_told(database_url: str, tmp_path: Path) -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("VLOG_")}
    named = {"VLOG_HOME": str(tmp_path), "VLOG_DATABASE_URL": database_url, "VLOG_TEMPORAL_ADDRESS": NOWHERE}
    output = tmp_path / "output"
    with output.open("wb") as out:
        running = subprocess.Popen(
            [sys.executable, "-m", "workers", "--pool", "io"], cwd=ROOT, env=clean | named, stdout=out, stderr=out
        )

    async def waits() -> bool:
        assert running.poll() is None, output.read_text()
        return "Temporal does not answer" in output.read_text()

    try:
        await eventually(waits, within=30)
        running.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(running.wait, 60) == 0, output.read_text()
    finally:
        running.kill()
        running.wait(10)
