"""What a worker is called, and by which id the mirror knows it: after a restart it is the same one.

So a killed worker leaves no ghost, and one that was disabled, or set itself aside, stays so.
"""

import logging
import os
import socket
import uuid
from dataclasses import dataclass
from typing import BinaryIO

from runtime.home import take_seat
from runtime.settings import Settings

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Called:
    name: str
    worker_id: str
    seat: BinaryIO | None = None  # to be kept open: a second worker without a name is another one


def name_for(settings: Settings) -> Called:
    """Take the name that the settings give, else one that no other worker of this machine and home has now."""
    host = socket.gethostname()
    if settings.worker_name:
        return Called(settings.worker_name, _id(settings, settings.worker_name))
    try:
        number, seat = take_seat(settings.home)
    except OSError as error:
        log.warning("%s cannot be written: without VLOG_WORKER_NAME this worker is new at every start", error.filename)
        return Called(f"{host}-{os.getpid()}", str(uuid.uuid4()))
    name = f"{host}-w{number}"  # `vlog up` calls its own host-1, host-2
    return Called(name, _id(settings, name), seat)


def _id(settings: Settings, name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"vlog:{socket.gethostname()}:{settings.home}:{name}"))
