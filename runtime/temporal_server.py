"""Embedded Temporal: the CLI's server on SQLite, with its web UI, for one home."""

import contextlib
import os
import signal
from collections.abc import Mapping
from pathlib import Path

from contracts.queues import SEARCH_OWNER, SEARCH_TIER, SEARCH_VIDEO_ID, SEARCH_VIDEO_STATUS
from runtime.files import make_private
from runtime.locate import temporal_binary
from runtime.one_shot import CommandFailed, run_to_end
from runtime.processes import dying_with_us
from runtime.supervisor import Program

RETENTION = "30d"  # its default is a day: a video's history would be gone before anybody asks

# What makes SQLite several times faster here; a power cut may cost the last transactions, a crash costs nothing.
PRAGMAS = ("journal_mode=wal", "synchronous=normal")

DYNAMIC_CONFIG = (
    # Without it fairness keys do nothing: one owner's two hundred uploads would hold up everybody.
    "matching.enableFairness=true",
    # Each partition is ordered on its own: with the default four, priorities mix.
    "matching.numTaskqueueReadPartitions=1",
    "matching.numTaskqueueWritePartitions=1",
    # A cancel reaches ffmpeg in a fraction of a second instead of with the next heartbeat.
    "system.enableCancelActivityWorkerCommand=true",
    "frontend.WorkerCommandsEnabled=true",
    # A worker that drains takes no new task with it.
    "frontend.enableCancelWorkerPollsOnShutdown=true",
)

SEARCH_ATTRIBUTES = (
    *(f"{name}=Keyword" for name in (SEARCH_VIDEO_ID, SEARCH_VIDEO_STATUS, SEARCH_OWNER)),
    f"{SEARCH_TIER}=Int",
)

# A person's own Temporal profile (TLS, a cloud address) is not about this server. The older "env file" is a third
# place, and one that cannot be read ends the command.
_NO_PROFILE = ("--disable-config-file", "--disable-config-env", "--env-file", os.devnull)


class EmbeddedTemporal:
    """One SQLite file and the server on it."""

    def __init__(self, folder: Path, *, port: int, ui_port: int, namespace: str = "default") -> None:
        self.folder = folder
        self.port = port
        self.ui_port = ui_port
        self.namespace = namespace

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def ui_url(self) -> str:
        return f"http://127.0.0.1:{self.ui_port}"

    def program(self, environment: Mapping[str, str] | None = None) -> Program:
        """Describe the server to a supervisor."""
        make_private(self.folder)
        argv = (
            *(temporal_binary(), "server", "start-dev", *_NO_PROFILE),
            *("--ip", "127.0.0.1", "--port", str(self.port), "--ui-port", str(self.ui_port)),
            *("--db-filename", str(self.folder / "temporal.db"), "--namespace", self.namespace),
            *_each("--sqlite-pragma", PRAGMAS),
            *_each("--dynamic-config-value", DYNAMIC_CONFIG),
            *_each("--search-attribute", SEARCH_ATTRIBUTES),
            "--ui-disable-news-fetch",  # self-hosted: the page asks nobody else
        )
        return Program(
            name="temporal",
            argv=dying_with_us(argv),
            environment=environment,
            ready=self.is_ready,
            stop_signal=signal.SIGTERM,
            stop_within_s=10.0,  # about three seconds; a restart before its end would find the ports taken
        )

    async def is_ready(self) -> bool:
        """Tell whether the namespace answers; asked by setting its retention, which start-dev has no option for."""
        argv = (
            *(temporal_binary(), "operator", "namespace", "update", *_NO_PROFILE),
            *("--address", self.address, "--namespace", self.namespace, "--retention", RETENTION),
            *("--command-timeout", "5s", "--client-connect-timeout", "2s"),
        )
        with contextlib.suppress(CommandFailed):
            await run_to_end("temporal operator namespace update", dying_with_us(argv), timeout_s=10)
            return True
        return False


def _each(flag: str, values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part for value in values for part in (flag, value))
