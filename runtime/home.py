"""VLOG_HOME: who runs on it, what they told others, and the secrets that outlive a run."""

import asyncio
import fcntl
import itertools
import os
import secrets
import uuid
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from pydantic import BaseModel, ConfigDict, ValidationError

from runtime.files import make_private, write_private

LOCK_TRIES = 10


class AlreadyRunning(Exception):
    """Another `up` holds this home."""


class RunFile(BaseModel):
    """What `up` tells the processes that join it; secret, since it holds passwords."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    pid: int
    started_at: datetime
    api_url: str
    temporal_address: str
    temporal_namespace: str = "default"  # empty: a server elsewhere, and Temporal's own configuration says which
    temporal_ui_url: str | None = None  # only the embedded Temporal has one that we know
    database_url: str
    storage_url: str
    sealing_key: str


class Secrets(BaseModel):
    """Made once per home: the embedded database keeps its password, and sealed claims stay readable."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    database_password: str
    postgres_password: str  # of the superuser; no process of ours uses it
    sealing_key: str


def read_run(home: Path) -> RunFile | None:
    """Read who runs on this home; None when nobody does, even if a killed `up` left its file behind."""
    try:
        run = RunFile.model_validate_json((home / "run.json").read_bytes())
    except (FileNotFoundError, ValidationError):
        return None
    # Either sign of life will do: the pid may be of another namespace, the lock may be on a share without locks.
    return run if _exists(run.pid) or is_held(home) else None


def write_run(home: Path, run: RunFile) -> None:
    write_private(home / "run.json", run.model_dump_json(indent=2).encode())


def remove_run(home: Path) -> None:
    (home / "run.json").unlink(missing_ok=True)


def read_secrets(home: Path) -> Secrets | None:
    try:
        return Secrets.model_validate_json((home / "secrets.json").read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


def make_secrets() -> Secrets:
    """Make new secrets. Save them only once the database knows them: a kill in between then mends itself."""
    return Secrets(
        database_password=secrets.token_urlsafe(24),
        postgres_password=secrets.token_urlsafe(24),
        sealing_key=secrets.token_urlsafe(32),
    )


def write_secrets(home: Path, made: Secrets) -> None:
    write_private(home / "secrets.json", made.model_dump_json(indent=2).encode())


async def hold(home: Path) -> BinaryIO:
    """Hold the home alone, until the file that this gives is closed or the process ends. Raises AlreadyRunning.

    The kernel drops the lock with its last descriptor, and Python does not hand that to children: no crash
    leaves it behind.
    """
    make_private(home)
    lock = _lock_file(home)
    try:
        for _ in range(LOCK_TRIES):
            if _lock(lock.fileno()):
                return lock
            await asyncio.sleep(0.05)  # somebody who only asks (is_held) has it for a moment
        raise AlreadyRunning(_who(home))
    except BaseException:
        lock.close()
        raise


def is_held(home: Path) -> bool:
    """Tell whether an `up` holds the home right now."""
    try:
        with open(home / "lock", "rb") as lock:
            return not _lock(lock.fileno())
    except OSError:
        return False


@dataclass(frozen=True)
class Seat:
    """A place in this home that one process at a time has, until the file is closed or the process ends."""

    number: int
    owner: str  # the id of whoever sits here, always the same; no other home has it, on whatever machine
    file: BinaryIO


def take_seat(home: Path, kind: str) -> Seat:
    """Take the lowest seat of a kind that no living process of this home has."""
    folder = make_private(home / "seats")
    for number in itertools.count(1):
        file = open(folder / f"{kind}-{number}", "a+b")
        if _lock(file.fileno()):
            return Seat(number, _owner(file), file)
        file.close()
    raise AssertionError("numbers do not end")


def _owner(file: BinaryIO) -> str:
    """Read who owns a seat; the first to take it says so, and anew if a crash left half of an id."""
    file.seek(0)
    try:
        return str(uuid.UUID(file.read(100).decode("ascii")))
    except ValueError:
        made = str(uuid.uuid4())
        file.truncate(0)
        file.write(made.encode())
        file.flush()
        return made


def _lock_file(home: Path) -> BinaryIO:
    return open(home / "lock", "a+b")


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _who(home: Path) -> str:
    run = read_run(home)
    known = f" (process {run.pid}, {run.api_url})" if run else ""
    return f"VLog already runs on {home}{known}. Stop it first, or set VLOG_HOME to another folder."


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
