"""Ports: free ones, and ones that stay ours while a server behind them restarts."""

import errno
import random
import socket
from dataclasses import dataclass, field

from runtime.processes import LINUX

# Below Linux's ephemeral range (32768 and up). A client that retries a dead port inside that range can be given
# the same number as its own end, connect to itself, and keep the server from ever coming back to it.
_FIRST, _LAST = 20000, 31999


class PortTaken(Exception):
    """Somebody else has the port a person asked for."""


@dataclass(frozen=True)
class Reserved:
    """A port no other stack will pick, until `release` or the end of this process."""

    port: int
    _held: socket.socket | None = field(default=None, repr=False)

    def release(self) -> None:
        if self._held:
            self._held.close()


def reserve(host: str = "127.0.0.1", *, wanted: int | None = None, preferred: int | None = None) -> Reserved:
    """Reserve a port: the wanted one or none at all, else the preferred one, else any free one."""
    if wanted is not None:
        if reserved := _try(host, wanted):
            return reserved
        raise PortTaken(f"Port {wanted} on {host} is taken by another program.")
    if preferred is not None and (reserved := _try(host, preferred)):
        return reserved
    for port in random.sample(range(_FIRST, _LAST + 1), 200):
        if reserved := _try(host, port):
            return reserved
    raise PortTaken(f"No free port between {_FIRST} and {_LAST} on {host}.")


def _try(host: str, port: int) -> Reserved | None:
    mark = _mark(port)
    if mark is None and LINUX:
        return None
    if not _could_listen(host, port):
        if mark:
            mark.close()
        return None
    return Reserved(port, mark)


def _mark(port: int) -> socket.socket | None:
    """Tell other stacks on this machine that a port is spoken for, though nobody listens on it yet.

    An abstract socket lives as long as its process and as far as the ports do (one network namespace);
    other systems have none, and take the small risk that two stacks start in the same instant.
    """
    if not LINUX:
        return None
    mark = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        mark.bind(f"\0vlog-port-{port}")
    except OSError:
        mark.close()
        return None
    return mark


def _could_listen(host: str, port: int) -> bool:
    """Do what a server does. Without SO_REUSEADDR the last run's connections, still in TIME_WAIT, would refuse us."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                return False
            raise
    return True
