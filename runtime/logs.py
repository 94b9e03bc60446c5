"""Logs of a process: one place that decides how a line looks and where it goes.

stdout always; VLOG_HOME/logs/<process>.log too, as JSON and rotated, unless somebody else keeps our output.
"""

import fcntl
import logging
import logging.handlers
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from runtime.files import make_private
from runtime.settings import Settings

FILE_BYTES = 10 * 1024**2
FILES_KEPT = 5


def _timestamp(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    # A foreign record is formatted once per handler: its own time, or stdout and the file would disagree.
    record = event.get("_record")
    when = datetime.fromtimestamp(record.created, UTC) if record else datetime.now(UTC)
    event["timestamp"] = when.isoformat(timespec="microseconds").replace("+00:00", "Z")
    return event


_SHARED: tuple[Processor, ...] = (
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.stdlib.PositionalArgumentsFormatter(),
    structlog.stdlib.ExtraAdder(),
    _timestamp,
    structlog.processors.StackInfoRenderer(),
)


def configure_logs(settings: Settings, process: str) -> None:
    """Set up structlog and the standard library's logging alike; call once, first thing in an entry point."""

    def with_process(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
        event.setdefault("process", process)
        return event

    shared = [*_SHARED, with_process]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handlers: list[logging.Handler] = [_handler(logging.StreamHandler(sys.stdout), shared, _is_console(settings))]
    if settings.log_files:
        handlers.append(_handler(_file(settings.home, process), shared, console=False))
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
        old.close()
    for handler in handlers:
        root.addHandler(handler)
    root.setLevel(settings.log_level.upper())
    logging.captureWarnings(True)
    for chatty in ("httpx", "httpcore", "asyncio", "sqlalchemy.engine", "alembic.runtime.plugins"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


def _handler(handler: logging.Handler, shared: list[Processor], console: bool) -> logging.Handler:
    rendering: list[Processor] = (
        [structlog.dev.ConsoleRenderer(colors=sys.stdout.isatty())]
        if console
        else [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    )
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
        )
    )
    return handler


def _is_console(settings: Settings) -> bool:
    if settings.log_format == "auto":
        return sys.stdout.isatty()
    return settings.log_format == "console"


def _file(home: Path, process: str) -> logging.Handler:
    """Open a log file that no other process writes: two that rotate the same one lose each other's lines."""
    folder = make_private(home / "logs")
    number = 1
    while not _claimed(folder / f".{_numbered(process, number)}.lock"):
        number += 1
    return logging.handlers.RotatingFileHandler(
        folder / f"{_numbered(process, number)}.log", maxBytes=FILE_BYTES, backupCount=FILES_KEPT, encoding="utf-8"
    )


def _numbered(process: str, number: int) -> str:
    return process if number == 1 else f"{process}-{number}"


def _claimed(lock: Path) -> bool:
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return False
    return True  # left open on purpose: the lock lasts as long as the process
