"""A worker beside the service's own whose ffmpeg does what a test says, and what people do to either."""

import contextlib
import subprocess
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx

from tests.e2e.service import Service
from tests.support.eventually import eventually

OTHER = "other"

# An ffmpeg that says what it is and fails at everything else, until a file `mended` lies beside it. Then, with a file
# `sick`, people's videos make it crash, and of the worker's own tests it passes five, each a line of `tests`, and no
# more; with a file `paced`, it reads at half the speed its source plays at.
MOODY = """#!/bin/sh
case " $* " in
*" -version "*|*" -encoders "*|*" -decoders "*|*" -filters "*|*" -demuxers "*) exec "{ffmpeg}" "$@" ;;
esac
[ -e "{folder}/mended" ] || exit 1
if [ -e "{folder}/sick" ]; then
    case " $* " in
    *self-test*" libx264 "*)
        echo >>"{folder}/tests"
        [ "$(wc -l <"{folder}/tests")" -le 5 ] || exit 1 ;;
    *self-test*) ;;
    *" libx264 "*|*" aac "*|*" mjpeg "*) kill -SEGV $$ ;;
    esac
fi
if [ -e "{folder}/paced" ]; then
    case " $* " in *" libx264 "*)
        for word do
            shift
            [ "$word" = -i ] && set -- "$@" -readrate 0.5
            set -- "$@" "$word"
        done ;;
    esac
fi
exec "{ffmpeg}" "$@"
"""

# An ffprobe that sees nothing while a file `blind` lies beside it.
BLIND = """#!/bin/sh
[ -e "{folder}/blind" ] && exit 1
exec "{ffprobe}" "$@"
"""


@dataclass
class Other:
    """A second worker, of all pools, whose ffmpeg does what the test says."""

    process: subprocess.Popen[bytes]
    folder: Path


async def row_of(service: Service, *, other: bool = True) -> Any:
    rows = await service.query(
        "SELECT worker_id, status, last_heartbeat, current_job_id, quarantined_at, pools_aside FROM workers"
        f" WHERE worker_name {'=' if other else '<>'} $1",
        OTHER,
    )
    return rows[0] if rows else None


async def becomes(service: Service, status: str, *, other: bool = True) -> None:
    async def is_so() -> bool:
        row = await row_of(service, other=other)
        return row is not None and row["status"] == status

    await eventually(is_so, within=60)


DEEDS = {"disable": "PUT", "enable": "PUT", "revoke": "POST"}


async def command(service: Service, deed: str, *, other: bool = True) -> None:
    """Do something to a worker; wait until it has heard of it, by the second beat from now at the latest."""
    row = await row_of(service, other=other)
    async with httpx.AsyncClient(timeout=30, verify=False) as http:
        answer = await http.request(DEEDS[deed], f"{service.url}/api/workers/{row['worker_id']}/{deed}")
    assert answer.status_code == 200, answer.text
    beats = [(await row_of(service, other=other))["last_heartbeat"]]

    async def has_heard() -> bool:
        beat = (await row_of(service, other=other))["last_heartbeat"]
        if beat != beats[-1]:
            beats.append(beat)
        return len(beats) > 2

    await eventually(has_heard, within=60)


async def settled(service: Service) -> None:
    """Wait until nothing of earlier videos waits for an encoder: their storyboards are made when they are ready."""

    async def is_so() -> bool:
        left = await service.query(
            "SELECT 1 FROM transcoding_jobs j WHERE NOT EXISTS"
            " (SELECT 1 FROM job_steps s WHERE s.job_id = j.id AND s.step = 'storyboard' AND s.outcome = 'completed')"
        )
        return not left

    await eventually(is_so, within=60)


async def audit(service: Service, worker_id: str) -> list[str]:
    rows = await service.query(
        "SELECT event FROM job_events WHERE job_id IS NULL AND actor = $1"
        " AND event IN ('worker.quarantined', 'worker.released') ORDER BY id",
        worker_id,
    )
    return [row["event"] for row in rows]


def encoders_of(worker: int) -> list[int]:
    """Name the processes that a worker has started and that live."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, IndexError):
            state, parent = (entry / "stat").read_text().rsplit(")", 1)[1].split()[:2]
            if int(parent) == worker and state != "Z":
                found.append(int(entry.name))
    return found


async def has_beaten(service: Service, since: datetime) -> bool:
    return bool((await row_of(service))["last_heartbeat"] > since)
