"""Workers that reach nothing but the API: processes with a key and a home of their own, told of nothing else."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.e2e.service import QUICK, ROOT, Service
from tests.support.eventually import eventually


@dataclass(frozen=True)
class RemoteMachine:
    process: subprocess.Popen[bytes]
    worker_id: str
    name: str
    home: Path
    log: Path


@contextmanager
def remote_worker(
    service: Service, name: str, folder: Path, *, api: str | None = None, **settings: str
) -> Iterator[RemoteMachine]:
    """Register a machine, and start its one command; `api` is where it finds the service, if not where we do."""
    answer = httpx.post(f"{service.url}/api/worker/register", json={"worker_name": name}, timeout=30)
    assert answer.status_code == 201, answer.text
    home, log = folder / name, folder / f"{name}.log"
    clean = {key: value for key, value in os.environ.items() if not key.startswith("VLOG_")}
    with log.open("ab") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "cli", "worker", "--api", api or service.url, "--key", answer.json()["api_key"]],
            cwd=ROOT,
            env=clean | {"VLOG_HOME": str(home), "VLOG_LOG_FILES": "false", "VLOG_DRAIN_SECONDS": "1"} | settings,
            stdout=out,
            stderr=out,
        )
    try:
        yield RemoteMachine(process, answer.json()["worker_id"], name, home, log)
    finally:
        if process.poll() is None:
            process.terminate()
        try:
            process.wait(30)
        finally:
            process.kill()


@contextmanager
def serving_elsewhere(folder: Path, settings: dict[str, str], *, workers: int = 0) -> Iterator[Service]:
    """Run a service that has no encoders, but for `workers`; one process orchestrates and reads."""
    usual = {"VLOG_LADDER": "180p=300/64", "VLOG_SPAN_SECONDS": "8", "VLOG_WORKER_HEARTBEAT_INTERVAL": "2"}
    running = Service(folder / "home", QUICK | usual | settings)
    running.start(workers=workers)
    local = None
    try:
        with (folder / "local.log").open("ab") as log:
            local = subprocess.Popen(
                [sys.executable, "-m", "workers", "--pool", "orchestrate,io"],
                cwd=ROOT,
                env=running.environment | {"VLOG_WORKER_NAME": "local", "VLOG_LOG_FILES": "false"},
                stdout=log,
                stderr=log,
            )
        yield running
    finally:
        if local is not None:
            local.terminate()
            local.wait(30)
        code = running.stop()
        left = running.processes()
    assert code == 0
    assert left == []


async def steps(service: Service, job_id: int) -> list[tuple[str, str, int, int, str]]:
    rows = await service.query(
        "SELECT step_key, worker_name, generation, attempt, outcome FROM job_steps"
        " WHERE job_id = $1 AND queue = 'vlog-cpu' ORDER BY id",
        job_id,
    )
    return [tuple(row.values()) for row in rows]


async def asking(service: Service, *names: str) -> None:
    """Wait until these machines have asked for work: plans are made for those who do."""

    async def ask() -> bool:
        rows = await service.query("SELECT worker_name FROM workers WHERE asked_at > now() - interval '60 seconds'")
        return {row["worker_name"] for row in rows} >= set(names)

    await eventually(ask, within=30)


async def encoding(service: Service, job_id: int, slug: str, *names: str) -> None:
    """Wait until each of them is in the middle of a span, and something is stored."""

    async def encode() -> bool:
        found = await steps(service, job_id)
        running = {name for key, name, *_, outcome in found if "transcode" in key and outcome == "running"}
        return running >= set(names) and any((service.storage / "videos" / slug).rglob("seg_*.m4s"))

    await eventually(encode, within=40)


async def answering(service: Service) -> None:
    async def answers() -> bool:
        try:
            await service.get("/health")
        except (OSError, httpx.HTTPError):
            return False
        return True

    await eventually(answers, within=20)
