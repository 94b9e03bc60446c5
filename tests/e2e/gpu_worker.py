"""A worker of the gpu pool beside the service's own, in a process of its own; x264 stands in for its device."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from media.tools import Toolbox
from tests.e2e.service import ROOT, Service
from tests.support.eventually import eventually

NAME = "gpu"

# What a file `mood` beside it says: `held` waits until it says something else; `full` has no session left, in NVENC's
# words; `broken` encodes two segments, and then the device is gone. Without it, the device is fine.
_FFMPEG = """#!/bin/sh
mood() {{ cat "{folder}/mood" 2>/dev/null; }}
case " $* " in *" libx264 "*playlist.m3u8*) ;; *) exec "{ffmpeg}" "$@" ;; esac
while [ "$(mood)" = held ]; do sleep 0.1; done
case "$(mood)" in
full)
    echo "[h264_nvenc @ 0x1] OpenEncodeSessionEx failed: out of memory (10): (no details)" >&2
    exit 187 ;;
broken) ;;
*) exec "{ffmpeg}" "$@" ;;
esac
for word do
    shift
    [ "$word" = -i ] && set -- "$@" -t 4
    set -- "$@" "$word"
done
"{ffmpeg}" "$@"
echo "[h264_nvenc @ 0x1] Failed locking bitstream buffer: device lost" >&2
exit 187
"""


@dataclass
class GpuWorker:
    service: Service
    folder: Path
    process: subprocess.Popen[bytes]

    def feels(self, mood: str) -> None:
        (self.folder / "mood").write_text(mood)

    def kill(self) -> None:
        """Let it go without a word, and its encoder with it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(30)


@asynccontextmanager
async def gpu_worker(service: Service, tools: Toolbox, folder: Path) -> AsyncIterator[GpuWorker]:
    folder.mkdir()
    tool = tools.pick()
    (folder / "ffmpeg").write_text(_FFMPEG.format(ffmpeg=tool.ffmpeg, folder=folder))
    (folder / "ffmpeg").chmod(0o755)
    (folder / "ffprobe").symlink_to(tool.ffprobe)
    environment = service.environment | {
        "VLOG_WORKER_NAME": NAME,
        "VLOG_LOG_FILES": "false",
        "VLOG_GPU_ENCODER": "libx264",
        "VLOG_GPU_SLOTS": "1",
        "VLOG_FFMPEG": str(folder / "ffmpeg"),
    }
    with (service.home.parent / "gpu.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "workers", "--pool", "gpu"],
            cwd=ROOT,
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    worker = GpuWorker(service, folder, process)
    try:

        async def idle() -> bool:
            assert process.poll() is None, (service.home.parent / "gpu.log").read_text()[-2000:]
            rows = await service.query(
                "SELECT capabilities->'encoders'->>'h264' AS encoder FROM workers"
                " WHERE worker_name = $1 AND status = 'idle' AND last_heartbeat > now() - interval '2 seconds'",
                NAME,
            )
            return [row["encoder"] for row in rows] == ["libx264"]

        await eventually(idle, within=60)
        yield worker
    finally:
        worker.kill()
        # So that the next test's worker is not taken for this one.
        await service.query(
            "UPDATE workers SET last_heartbeat = now() - interval '1 hour' WHERE worker_name = $1", NAME
        )
