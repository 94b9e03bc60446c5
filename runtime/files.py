"""Small files that appear whole or not at all, for their owner only."""

import os
from pathlib import Path


def make_private(folder: Path) -> Path:
    """Make a folder that only its owner can enter; one that exists keeps its mode."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def write_private(path: Path, data: bytes) -> None:
    """Write beside, flush, rename: a reader sees the old file or the new one, and only the owner sees either."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "wb") as file:
        os.fchmod(descriptor, 0o600)  # a leftover of the same name may have had another mode
        file.write(data)
        file.flush()
        os.fsync(descriptor)
    os.replace(beside, path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make a rename in this folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
