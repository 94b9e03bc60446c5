"""What a worker is called, and by which id the mirror knows it: after a restart it is the same one.

So a killed worker leaves no ghost, and one that was disabled, or set itself aside, stays so. Workers that differ do not
take each other's seats, in whatever order a machine starts them: a disable must not move from the GPU to the CPU.
"""

import hashlib
import logging
import os
import socket
import uuid
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from contracts.queues import DEFAULT_POOLS, Pool
from runtime.home import Seat, take_seat
from runtime.settings import Settings

log = logging.getLogger(__name__)

LONGEST = 120  # characters of a name in a file's; file systems take 255 in all


@dataclass(frozen=True)
class Called:
    name: str
    worker_id: str
    seat: Seat | None = None  # to be kept: while it is held, a second worker like this one is another one


def name_for(settings: Settings, pools: Collection[Pool]) -> Called:
    """Take the name that the settings give, else one that no other worker of this machine and home has now."""
    given, host = settings.worker_name, socket.gethostname()
    kind = _kind(settings, pools)
    try:
        seat = take_seat(settings.home, f"name-{_as_file(given)}" if given else kind)
    except OSError as error:
        log.warning("no seat below %s, this worker is a new one at every start: %s", settings.home, error)
        return Called(given or f"{host}-{os.getpid()}", str(uuid.uuid4()))
    return Called(given or f"{host}-{kind}-{seat.number}", seat.owner, seat)


def _as_file(name: str) -> str:
    """Turn a name into one that any file system takes: twenty-five letters of some scripts are too long written out."""
    written = quote(name, safe="")
    return written if len(written) <= LONGEST else f"{written[:LONGEST]}-{hashlib.sha256(name.encode()).hexdigest()}"


def _kind(settings: Settings, pools: Collection[Pool]) -> str:
    """Say what a worker is started for: `cpu`, `orchestrate-io`, `gpu-renderD129`; `worker` is the usual one."""
    # Not `""` for that: `vlog up` calls its own host-1, host-2.
    served = "worker" if set(pools) == set(DEFAULT_POOLS) else "-".join(pool for pool in Pool if pool in pools)
    device = Path(settings.gpu_device or "").name if Pool.GPU in pools else ""
    return f"{served}-{device}" if device else served
